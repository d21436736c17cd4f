// Swagger UI over the service's own document, in the order of its story.
globalThis.SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#swagger-ui",
  deepLinking: true,
  tryItOutEnabled: true,
  displayRequestDuration: true,
  validatorUrl: null, // Swagger UI would otherwise ask another host to validate the document
});

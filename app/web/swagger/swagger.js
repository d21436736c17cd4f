// Swagger UI for the service's OpenAPI document, in the page's theme.

import { loadScript } from "../shared/dom.js";
import { accessKeyInUse, hasAccessKey } from "../shared/service.js";
import { isDark, onThemeChange } from "../shared/theme-switch.js";
import { downloadNames } from "./download-names.js";
import { missingParts } from "./missing-parts.js";

const showTheme = () => document.documentElement.classList.toggle("dark-mode", isDark()); // the name in Swagger UI's styles

showTheme();
onThemeChange(showTheme);
await loadScript("swagger/swagger-ui-bundle.js", "Swagger UI");
const page = globalThis.SwaggerUIBundle({
  url: "openapi.json?padlocks=now", // a padlock only where an access key is needed now
  dom_id: "#swagger-ui",
  deepLinking: true,
  tryItOutEnabled: true,
  displayRequestDuration: true,
  plugins: [downloadNames, missingParts],
  onComplete: () => hasAccessKey() && page.preauthorizeApiKey("accessKey", accessKeyInUse()), // asked on another page
  validatorUrl: null, // otherwise Swagger UI sends the document to another host
});

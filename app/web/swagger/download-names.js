// Names of the files that Swagger UI offers to download: its own would be response_1795...json for every operation.

const QUOTED = /filename="([^"]+)"/;
const ENDINGS = {
  "application/json": "json",
  "application/problem+json": "json",
  "application/yaml": "yaml",
  "text/csv": "csv",
  "text/html": "html",
  "text/plain": "txt",
};

/** The name that the service gives, or one from the path: "/budgets/web" below the service becomes "budgets-web.json". */
export function downloadName(url, contentType, headers, base) {
  const given = QUOTED.exec(headers?.["content-disposition"] ?? "");
  if (given) return given[1];
  const path = decodeURIComponent(new URL(url, base).pathname.slice(new URL(".", base).pathname.length));
  const plain = path.replaceAll(/[^\w.-]+/g, "-").replaceAll(/^-+|-+$/g, "") || "answer";
  return `${plain}.${ENDINGS[(contentType ?? "").split(";")[0].trim()] ?? "txt"}`;
}

/** A plugin of Swagger UI. It shows a response as before, with another name for its file. */
export function downloadNames({ React }) {
  const wrapped = (ResponseBody) =>
    function NamedResponseBody(props) {
      const { url, contentType, headers, getComponent } = props;
      const fileName = downloadName(url, contentType, headers, document.baseURI);
      const NamedCode = React.useMemo(() => {
        const Code = getComponent("HighlightCode", true);
        return (given) => React.createElement(Code, { ...given, fileName });
      }, [getComponent, fileName]);
      const named = (name, ...options) => (name === "HighlightCode" ? NamedCode : getComponent(name, ...options));
      return React.createElement(ResponseBody, { ...props, getComponent: named });
    };
  return { wrapComponents: { responseBody: wrapped } };
}

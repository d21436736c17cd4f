// A part of a form that is missing: Swagger UI does not send the request, and would not say why.

/** A plugin of Swagger UI. It says below the button which parts are missing. */
export function missingParts({ React }) {
  const MissingParts = ({ path, method, oas3Selectors }) => {
    const value = oas3Selectors.requestBodyValue(path, method);
    const parts = value?.entrySeq ? value.entrySeq().toArray() : []; // a JSON body is a text
    const names = parts
      .filter(([, part]) => part?.get?.("errors")?.size > 0 && !part.get("value"))
      .map(([name]) => name);
    if (names.length === 0) return null;
    const said = `Not sent: choose a file for ${names.join(" and ")} first.`;
    return React.createElement("p", { className: "missing-part", role: "alert" }, said);
  };
  const withParts = (Execute, { getComponent }) =>
    function ExecuteWithParts(props) {
      const { path, method } = props;
      const parts = React.createElement(getComponent("MissingParts", true), { path, method });
      return React.createElement(React.Fragment, null, React.createElement(Execute, props), parts);
    };
  return { components: { MissingParts }, wrapComponents: { execute: withParts } };
}

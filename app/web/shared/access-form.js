// The form that asks for an access key, only if the service refuses a request without one, and once in a tab.

import { element } from "./dom.js";
import { makeField, showErrors } from "./forms.js";
import { forgetAccessKey, hasAccessKey, useAccessKey } from "./service.js";

const UNAUTHORIZED = 401;
const HELP =
  "This service requires an access key. This tab keeps it for all pages of the service, in its session storage, until you " +
  "close the tab.";

/** Make the form. `use()` is called when the user has entered an access key, or has had it forgotten. */
export function wireAccess(form, use) {
  const field = { id: "key", name: "key", label: "Access key", help: HELP, type: "password" };
  const leave = () => {
    forgetAccessKey();
    form.elements.key.value = "";
    use();
  };
  form.replaceChildren(
    makeField(field),
    element("button", { class: "primary", type: "submit" }, "Use this access key"),
    element(
      "p",
      { class: "help in-use", hidden: true },
      "This tab keeps your access key until you close it. ",
      element("button", { class: "quiet", type: "button", onclick: leave }, "Forget it now"),
    ),
  );
  form.querySelector("[data-error-of]").setAttribute("role", "alert");
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    useAccessKey(encodeURIComponent(form.elements.key.value.trim())); // access keys need no encoding, but a header rejects other text
    use();
  });
}

/** The service has let the user in: ask for nothing, and say what the tab keeps, if it does. */
export function showEntered(form) {
  form.hidden = !hasAccessKey();
  showErrors(form, []);
  showAsked(form, false);
}

/** Ask for an access key if that is why a request failed. Returns whether it is. A key that is refused is forgotten. */
export function showLocked(form, failure) {
  const isLocked = failure.status === UNAUTHORIZED;
  if (!isLocked) return false;
  form.hidden = false;
  showAsked(form, true);
  if (hasAccessKey()) {
    showErrors(form, [failure], () => "key");
    forgetAccessKey();
  }
  form.elements.key.focus();
  return true;
}

/** Show the field and its button, or the line about the key in use. */
function showAsked(form, isAsked) {
  for (const child of form.children) child.hidden = child.matches(".in-use") === isAsked;
}

// The form that asks for an access key. The key is kept in memory until the user leaves the page.

import { element } from "./dom.js";
import { makeField, showErrors } from "./forms.js";
import { useAccessKey } from "./service.js";

const UNAUTHORIZED = 401;
const HELP = "This service requires an access key. It stays in this tab until you leave the page.";

/** Make the form. `use()` is called when the user has entered an access key. */
export function wireAccess(form, use) {
  const field = { id: "key", name: "key", label: "Access key", help: HELP, type: "password" };
  form.replaceChildren(
    makeField(field),
    element("button", { class: "primary", type: "submit" }, "Use this access key"),
  );
  form.querySelector("[data-error-of]").setAttribute("role", "alert");
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    useAccessKey(encodeURIComponent(form.elements.key.value.trim())); // access keys need no encoding, but a header rejects other text
    use();
  });
}

/** Hide the form: the service has let the user in. */
export function showEntered(form) {
  form.hidden = true;
  showErrors(form, []);
}

/** Ask for an access key if that is why a request failed. Returns whether it is. */
export function showLocked(form, failure) {
  const isLocked = failure.status === UNAUTHORIZED;
  form.hidden = !isLocked && form.hidden;
  const isRefused = isLocked && form.elements.key.value !== "";
  showErrors(form, isRefused ? [failure] : [], () => "key");
  if (isLocked) form.elements.key.focus();
  return isLocked;
}

// The page /verify: it sends the files, and shows what the service has found.

import { byId } from "../shared/dom.js";
import { asSentence, errorsOf } from "../shared/forms.js";
import { postForm } from "../shared/service.js";

const drop = byId("drop");
const input = byId("files");
let latest = new AbortController();

/** Send the files, and show the result. Only the latest ones count. */
async function verify(files) {
  if (files.length === 0) return;
  latest.abort();
  latest = new AbortController();
  const { signal } = latest;
  byId("error").textContent = "";
  byId("result").replaceChildren();
  byId("busy").textContent = `Checking ${files.map((file) => file.name).join(", ")}…`;
  const form = new FormData();
  for (const file of files) form.append("file", file, file.name);
  try {
    const response = await postForm("verify", form, { Accept: "text/html" }, signal);
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    signal.throwIfAborted();
    byId("result").replaceChildren(...page.getElementById("result").childNodes);
    byId("result").focus();
  } catch (failure) {
    if (signal.aborted) return;
    byId("error").textContent = errorsOf(failure)
      .map(({ detail }) => asSentence(detail))
      .join(" ");
  }
  byId("busy").textContent = "";
}

input.addEventListener("change", () => verify([...input.files]));
drop.addEventListener("dragover", (event) => {
  event.preventDefault();
  drop.classList.add("over");
});
drop.addEventListener("dragleave", () => drop.classList.remove("over"));
drop.addEventListener("drop", (event) => {
  event.preventDefault();
  drop.classList.remove("over");
  input.value = "";
  void verify([...event.dataTransfer.files]);
});
byId("form").addEventListener("submit", (event) => event.preventDefault());
if (input.files.length > 0) void verify([...input.files]); // chosen before this script was there

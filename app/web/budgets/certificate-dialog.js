// The certificate of a release in a dialog: the service's own page of it, to read, to print and to save.

import { byId, download } from "../shared/dom.js";
import { errorsOf } from "../shared/forms.js";
import { getAs } from "../shared/service.js";
import { fileName } from "./file-name.js";

const FILES = {
  "certificate-json": { mediaType: "application/json", ending: "certificate.json" },
  "certificate-yaml": { mediaType: "application/yaml", ending: "registry.yaml" },
};

/** Connect the dialog. Returns a function that fetches a certificate, and gives back what opens the dialog. */
export function wireCertificate() {
  const dialog = byId("certificate-dialog");
  const pageTitle = document.title;
  let shownKey = "";

  for (const [id, { mediaType, ending }] of Object.entries(FILES)) {
    byId(id).addEventListener("click", () => save(mediaType, ending));
  }
  byId("certificate-print").addEventListener("click", () => print());
  byId("certificate-close").addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", () => {
    document.title = pageTitle;
  });

  async function save(mediaType, ending) {
    byId("certificate-error").textContent = "";
    try {
      download(fileName(shownKey, ending), mediaType, await getAs(mediaType, pathOf(shownKey)));
    } catch (failure) {
      byId("certificate-error").textContent = errorsOf(failure)[0].detail;
    }
  }

  return async (key, signal) => {
    const content = await getAs("text/html", pathOf(key), signal);
    const page = new DOMParser().parseFromString(await content.text(), "text/html");
    signal.throwIfAborted();
    return () => {
      shownKey = key;
      byId("certificate-title").textContent = key;
      byId("certificate-error").textContent = "";
      byId("certificate").replaceChildren(...page.querySelector("main").childNodes);
      document.title = fileName(key, "certificate"); // a browser that prints into a file calls it so
      dialog.showModal();
      dialog.scrollTop = 0;
    };
  };
}

function pathOf(key) {
  return `releases/${encodeURIComponent(key)}/certificate`;
}

// The certificate of a release in a dialog: the service's own page of it, to read, to print and to save.

import { byId, download, element } from "../shared/dom.js";
import { errorsOf } from "../shared/forms.js";
import { getAs } from "../shared/service.js";
import { fileName } from "./file-name.js";

const FILES = {
  "certificate-json": { label: "Download JSON", mediaType: "application/json", ending: "certificate.json" },
  "certificate-yaml": { label: "Download registry YAML", mediaType: "application/yaml", ending: "registry.yaml" },
};

/** Connect the dialog. Returns a function that fetches a certificate, and gives back what opens the dialog. */
export function wireCertificate() {
  const dialog = emptyDialog();
  document.body.append(dialog);
  const pageTitle = document.title;
  let shownKey = "";

  for (const [id, { mediaType, ending }] of Object.entries(FILES)) {
    byId(id).addEventListener("click", async () => {
      byId("certificate-error").textContent = "";
      try {
        await saveCertificate(shownKey, mediaType, ending);
      } catch (failure) {
        byId("certificate-error").textContent = errorsOf(failure)[0].detail;
      }
    });
  }
  byId("certificate-print").addEventListener("click", () => print());
  byId("certificate-close").addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", () => {
    document.title = pageTitle;
  });

  return async (key, signal) => {
    const content = await getAs("text/html", pathOf(key), signal);
    const page = new DOMParser().parseFromString(await content.text(), "text/html");
    for (const link of page.querySelectorAll("main a")) {
      link.setAttribute("href", link.getAttribute("href").replace("../../", "")); // this page is not below folders
    }
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

/** Save the certificate of a release as a file. */
async function saveCertificate(key, mediaType, ending) {
  download(fileName(key, ending), mediaType, await getAs(mediaType, pathOf(key)));
}

/** Buttons that save the certificate of a release, as JSON and as YAML. `done(failure)` gets null if it is saved. */
export function certificateButtons(key, done) {
  return Object.values(FILES).map(({ label, mediaType, ending }) => {
    const name = label.replace("Download", "Certificate as");
    const onclick = () => saveCertificate(key, mediaType, ending).then(() => done(null), done);
    return element("button", { class: "quiet", type: "button", onclick }, name);
  });
}

function emptyDialog() {
  const button = (id, kind, label, attributes = {}) =>
    element("button", { class: kind, id, type: "button", ...attributes }, label);
  const buttons = [
    button("certificate-print", "primary", "Print", { autofocus: true }),
    ...Object.entries(FILES).map(([id, { label }]) => button(id, "quiet", label)),
    button("certificate-close", "quiet", "Close"),
  ];
  const attributes = { class: "certificate-dialog", id: "certificate-dialog", "aria-labelledby": "certificate-title" };
  return element(
    "dialog",
    { ...attributes, closedby: "any" },
    element(
      "div",
      { class: "dialog-head" },
      element("h2", { id: "certificate-title" }),
      element("div", { class: "row" }, ...buttons),
      element("p", { class: "error", id: "certificate-error", role: "alert" }),
    ),
    element("article", { id: "certificate", "aria-label": "Certificate" }),
  );
}

function pathOf(key) {
  return `releases/${encodeURIComponent(key)}/certificate`;
}

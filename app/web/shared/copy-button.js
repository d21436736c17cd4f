// A button that copies text.

const SHOWN_MS = 1500;

/** Make a button copy the text of an element. */
export function offerCopy(button, source) {
  button.addEventListener("click", async () => {
    await copyText(source);
    button.textContent = "Copied";
    setTimeout(() => {
      button.textContent = "Copy";
    }, SHOWN_MS);
  });
}

/** Browsers give the clipboard only to pages with TLS or on this machine. Other pages can copy a selection. */
async function copyText(source) {
  if (navigator.clipboard) {
    await navigator.clipboard.writeText(source.textContent);
  } else {
    getSelection().selectAllChildren(source);
    document.execCommand("copy");
  }
}

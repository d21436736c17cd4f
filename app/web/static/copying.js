// A button that copies.

/** Let a button copy what an element says. */
export function offerCopy(button, source) {
  button.addEventListener("click", async () => {
    await copied(source);
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 1500);
  });
}

/** Browsers hide the clipboard from pages without TLS, but still copy what is selected. */
async function copied(source) {
  if (navigator.clipboard) return navigator.clipboard.writeText(source.textContent);
  getSelection().selectAllChildren(source);
  document.execCommand("copy");
}

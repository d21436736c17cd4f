// A text area that also takes the text of a file, dropped onto it or chosen.

/** Connect a text area and a file input. `read()` is called after a file has filled the area. */
export function wireDrop(area, input, read) {
  const open = async (file) => {
    area.value = await file.text();
    read();
  };
  area.addEventListener("dragover", (event) => {
    event.preventDefault();
    area.classList.add("over");
  });
  area.addEventListener("dragleave", () => area.classList.remove("over"));
  area.addEventListener("drop", async (event) => {
    area.classList.remove("over");
    const [file] = event.dataTransfer.files;
    if (!file) return;
    event.preventDefault();
    await open(file);
  });
  input.addEventListener("change", async () => {
    const [file] = input.files;
    if (file) await open(file);
  });
}

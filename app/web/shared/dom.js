// Elements of the page: find them, make them, load scripts into them.

export const byId = (id) => document.getElementById(id);

/** An element with attributes and children. Strings become text, never markup. */
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value === true) made.setAttribute(key, "");
    else if (value !== false && value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

/** Offer a text or a blob as a file to download. */
export function download(name, type, content) {
  const url = URL.createObjectURL(new Blob([content], { type }));
  element("a", { href: url, download: name }).click();
  URL.revokeObjectURL(url);
}

/** Load a classic script. `name` is for the error message. */
export function loadScript(src, name) {
  return new Promise((resolve, reject) => {
    const onerror = () => reject(new Error(`${name} did not load.`));
    document.head.append(element("script", { src, onload: () => resolve(), onerror }));
  });
}

// What one tab keeps until it is closed, in its session storage: no other tab reads it, and nothing of it is sent.

// Services under several path prefixes of one host share the storage.
const PREFIX = `gsh ${new URL(".", document.baseURI).pathname} `;

/** The text that was kept under a name, or null. Browsers can forbid storage: then nothing is kept. */
export function kept(name) {
  try {
    return sessionStorage.getItem(PREFIX + name);
  } catch {
    return null;
  }
}

/** Keep a text until the tab is closed. Returns whether there was room for it. */
export function keep(name, text) {
  try {
    sessionStorage.setItem(PREFIX + name, text);
    return true;
  } catch {
    forget(name);
    return false;
  }
}

export function forget(name) {
  try {
    sessionStorage.removeItem(PREFIX + name);
  } catch {
    // There is nothing to forget.
  }
}

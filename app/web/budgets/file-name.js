// Names of files that are made from the names of releases.

const MOST_CHARACTERS = 200; // file systems allow 255 bytes with the ending

/** A name that every file system takes. */
export function fileName(key, ending) {
  return `${key.replaceAll(/[^\w.-]/g, "_").slice(0, MOST_CHARACTERS)}.${ending}`;
}

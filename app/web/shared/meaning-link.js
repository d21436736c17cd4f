// The link from a field for ε to the page that says what it promises.

export const MEANING = { href: "what-epsilon-means", text: "What ε means" };

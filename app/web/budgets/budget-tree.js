// The tree of budgets: each below its parent, and periods below the budget that is renewed.

/**
 * The budgets without a listed parent, each with those below it: `{ budget, ancestors, periods, children }`. The nearest
 * ancestor comes first. The latest period comes first.
 */
export function treeOf(budgets) {
  const nodes = new Map(budgets.map((budget) => [budget.id, { budget, ancestors: [], periods: [], children: [] }]));
  const roots = [];
  for (const node of nodes.values()) {
    const { parent, period_of } = node.budget;
    const above = nodes.get(period_of ?? parent);
    if (above === undefined) roots.push(node);
    else if (period_of === null) above.children.push(node);
    else above.periods.unshift(node);
  }
  for (const root of roots) settle(root, []);
  return roots;
}

function settle(node, ancestors) {
  node.ancestors = ancestors;
  for (const period of node.periods) period.ancestors = ancestors;
  for (const child of node.children) settle(child, [node.budget, ...ancestors]);
}

/** All nodes from top to bottom, each with its level. `isOpen(node)` says whether its periods are among them. */
export function linesOf(nodes, isOpen, level = 0) {
  return nodes.flatMap((node) => [
    { ...node, level },
    ...(isOpen(node) ? linesOf(node.periods, isOpen, level + 1) : []),
    ...linesOf(node.children, isOpen, level + 1),
  ]);
}

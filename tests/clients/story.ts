// A program for the client that @hey-api/openapi-ts makes. It is compiled and not run: its types are the test.
import { accountExact, calibrate, getBudget, getProblem, putBudget, release } from "./gsh_client";
import type { BudgetProblem, MechanismIn, Problem, ProblemError, Sigma } from "./gsh_client";

const target = { mechanism: { c_u: 51914, tau: 1 }, epsilon: 0.349, delta: 1e-5 };

export async function calibrated(): Promise<MechanismIn> {
  const { data } = await calibrate({ body: target, throwOnError: true });
  // The answer is a union with a tag: its other forms have no one mechanism.
  if (data.kind === "frontier") throw new Error(`${data.frontier.length} points`);
  if (data.kind === "tables" || data.kind === "remaining-tables") throw new Error(`${data.tables.length} tables`);
  if (data.kind === "remaining") return data.mechanism;
  const largest: Sigma | null = data.largest_sigma;
  return largest === null ? data.mechanism : { ...data.mechanism, sigma: largest };
}

export async function spent(): Promise<number> {
  const mechanism = await calibrated();
  const account = await accountExact({ body: { mechanism, epsilon: [0.1, 0.349] }, throwOnError: true });
  const deltas: number[] = account.data.points.map((point) => point.delta);
  await putBudget({ path: { id: "web" }, body: { epsilon: 1, delta: Math.max(...deltas, 1e-4) } });
  const { data, error } = await release({
    body: { mechanism, budget: "web", groups: { keys: ["a.org", ["b.org", 2]], counts: [48211, 3] } },
    headers: { "Idempotency-Key": "week-1" },
  });
  if (data === undefined) throw new Error(explained(error));
  const budget = await getBudget({ path: { id: "web" }, throwOnError: true });
  return budget.data.spent.releases;
}

export function explained(problem: Problem | BudgetProblem): string {
  const place = (error: ProblemError): string => error.pointer ?? error.header ?? error.parameter ?? "";
  if (problem.type === "/problems/budget-exceeded" && "asked" in problem) return `${problem.asked.mu_squared}`;
  return problem.errors.map((error) => `${place(error)} ${error.detail}`).join("\n");
}

export async function refusedByTheCompiler(): Promise<void> {
  // @ts-expect-error: epsilon is a number
  await calibrate({ body: { ...target, epsilon: "0.349" } });
  // @ts-expect-error: a mechanism has a tau
  await calibrate({ body: { ...target, mechanism: { c_u: 51914 } } });
  // @ts-expect-error: there is no such kind of sensitivity
  await accountExact({ body: { mechanism: { c_u: 1, tau: 1, tau_star: 9, sigma: 1, aggregates: { names: ["a"], covariance: [[1]], sensitivity: { kind: "l3", bound: 1 } } } } });
  // @ts-expect-error: there is no such parameter
  await getBudget({ path: { id: "web" }, query: { seed: 1 } });
  // @ts-expect-error: a problem is found by its name
  await getProblem({ path: {} });
}

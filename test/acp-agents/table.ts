// The results of all agents as a table, and its place in docs/acp-agents.md.

export interface Tried {
  readonly agent: string;
  readonly version: string;
  /** The reason why it cannot be installed; null: it is installed. */
  readonly notInstallable: string | null;
  /** By the name of the scenario: null if it passed, otherwise the failure. */
  readonly results: Readonly<Record<string, string | null>>;
}

/** A line for each scenario, a column for each agent. */
export function tableOf(tried: readonly Tried[]): string {
  const scenarios = new Set(tried.flatMap(({ results }) => Object.keys(results)));
  const head = ['scenario', ...tried.map(({ agent, version }) => `${agent} (${version})`)];
  const lines = [...scenarios].map((name) => [name, ...tried.map((one) => cellOf(one, name))]);
  return [head, head.map(() => '---'), ...lines].map((cells) => `| ${cells.map(plain).join(' | ')} |`).join('\n');
}

function cellOf({ notInstallable, results }: Tried, scenario: string): string {
  if (notInstallable !== null) return `not installable: ${notInstallable}`;
  const failure = results[scenario];
  if (failure === undefined) return 'not tried';
  return failure === null ? 'passed' : `failed: ${failure}`;
}

/** On one line, with the characters of a table escaped. */
const plain = (text: string) => text.replaceAll(/\s+/g, ' ').trim().replaceAll('|', '\\|').replaceAll('<', '&lt;');

const [BEGIN, END] = ['<!-- npm run test:agents writes this table -->', '<!-- until here -->'];

/** The text with the table between the marks. Throws if the marks are missing. */
export function withTable(text: string, table: string): string {
  const [begin, end] = [text.indexOf(BEGIN), text.indexOf(END)];
  if (begin < 0 || end < begin) throw new Error(`no place for the table: "${BEGIN}" … "${END}"`);
  return `${text.slice(0, begin)}${BEGIN}\n${table}\n${text.slice(end)}`;
}

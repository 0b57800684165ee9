import { ThroughlineError } from '../../../../src/core/errors.ts';

/** Fields whose values differ from run to run, and not in what they mean. */
const TIMES =
  /^(createdAt|updatedAt|startedAt|endedAt|askedAt|openedAt|usedAt|at|ms|expiresIn|hash|process|place|position)$/;
const IDS = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\b[0-9a-f]{32}\b/g;

/** Everything that was answered, with ids by their first appearance, and without times, paths and hands (`by`) of this run. */
export function comparable(value: unknown, home: string): unknown {
  const ids = new Map<string, string>();
  const text = JSON.stringify(value, (key, inner) =>
    TIMES.test(key) && inner !== null ? key : key === 'by' ? undefined : inner,
  );
  const named = text.replaceAll(home, 'HOME').replaceAll(IDS, (id) => {
    const known = ids.get(id) ?? `id ${ids.size + 1}`;
    ids.set(id, known);
    return known;
  });
  return JSON.parse(named);
}

/** What a call comes to: its value, or the error as a caller sees it. */
export async function outcome(call: () => unknown): Promise<unknown> {
  try {
    return { value: await call() };
  } catch (error) {
    if (!(error instanceof ThroughlineError)) throw error;
    return { code: error.code, message: error.message, hint: error.hint ?? null };
  }
}

import { basename } from 'node:path';
import { ThroughlineError } from '../../../../src/core/errors.ts';

/** Fields whose values differ from run to run. */
const CHANGING_FIELDS =
  /^(createdAt|updatedAt|startedAt|endedAt|askedAt|openedAt|usedAt|at|ms|expiresIn|hash|process|place|position)$/;
const IDS = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\b[0-9a-f]{32}\b/g;

/** The value in a form that is the same in every run: ids are numbered in the order of their first appearance; times, paths and `by` are left out. */
export function comparable(value: unknown, home: string): unknown {
  const ids = new Map<string, string>();
  const text = JSON.stringify(value, (key, inner) =>
    CHANGING_FIELDS.test(key) && inner !== null ? key : key === 'by' ? undefined : inner,
  );
  const named = text
    .replaceAll(home, 'HOME')
    .replaceAll(basename(home), 'NAME')
    .replaceAll(IDS, (id) => {
      const known = ids.get(id) ?? `id ${ids.size + 1}`;
      ids.set(id, known);
      return known;
    });
  return JSON.parse(named);
}

/** The names of the calls that did not fail. */
export function withoutError(outcomes: Readonly<Record<string, unknown>>): string[] {
  return Object.keys(outcomes).filter((name) => !Object.hasOwn(outcomes[name] as object, 'code'));
}

/** The result of a call: its value, or the error as a caller sees it. */
export async function outcome(call: () => unknown): Promise<unknown> {
  try {
    return { value: await call() };
  } catch (error) {
    if (!(error instanceof ThroughlineError)) throw error;
    return { code: error.code, message: error.message, hint: error.hint ?? null };
  }
}

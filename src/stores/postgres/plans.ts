/*
 * How the server plans our statements. On a connection to the server itself they are named: planned once, and the plan is kept while tables grow
 * from empty to large. So a plan must not depend on how large they are, nor on the values: each statement has one index that fits.
 */

/** Tables are joined row by row, by an index. Without `force_generic_plan` a statement is planned five times before its plan is kept. */
export const KEEP_PLANS = `
  SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; SET jit = off; SET plan_cache_mode = force_generic_plan`;
/** For a statement that reads much: the server's own settings, until the end of the transaction. */
export const PLAN_FREELY = `
  SET LOCAL enable_seqscan TO DEFAULT; SET LOCAL enable_hashjoin TO DEFAULT; SET LOCAL enable_mergejoin TO DEFAULT;
  SET LOCAL plan_cache_mode TO DEFAULT`;

/** A statement whose columns would change with the next schema: PostgreSQL then refuses the plan that it has kept. */
const ALL_COLUMNS = /^\s*SELECT (\w+\.)?\*/;
/** A statement whose best index depends on its values: those that are left out, or how rare a word is. */
const BY_VALUES = /\$\d+(::[\w[\]]+)? IS NULL OR|@@/;
const names = new Map<string, string | undefined>();
let named = 0;

/** The name of a statement whose plan is kept; undefined: it is planned each time. */
export function nameOf(text: string): string | undefined {
  if (!names.has(text)) {
    const isKept = !ALL_COLUMNS.test(text) && !BY_VALUES.test(text);
    names.set(text, isKept ? `throughline_${++named}` : undefined);
  }
  return names.get(text);
}

const numberedTexts = new Map<string, string>();

/** A statement as PostgreSQL writes it, from one in which `?`, or `?1` …, stands for a value. */
export function numbered(text: string): string {
  let known = numberedTexts.get(text);
  if (known === undefined) {
    let last = 0;
    known = text.replace(/\?(\d*)/g, (_, number: string) => `$${number || ++last}`);
    numberedTexts.set(text, known);
  }
  return known;
}

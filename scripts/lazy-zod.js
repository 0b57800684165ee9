// zod for the small agents of the tests (test-program.js). The ACP library describes every message of the protocol by schemas of zod, and
// to create them takes most of the time of a start. Here a schema is created when it is first used. The checks are the same.
import * as zod from 'zod/v4';

const MADE = Symbol('the schema itself');
/** Methods that use a schema. All others return a new schema. */
const USES = new Set(['parse', 'safeParse', 'parseAsync', 'safeParseAsync']);

/** @typedef {any} Schema not typed: no code of ours imports this module */

/**
 * @param {() => Schema} make
 * @returns {Schema}
 */
function lazy(make) {
  /** @type {Schema} */
  let made;
  const schema = () => {
    made ??= make();
    return made;
  };
  return new Proxy(
    {},
    {
      get(_, name) {
        if (name === MADE) return schema();
        if (USES.has(String(name))) return schema()[name].bind(schema());
        return (/** @type {unknown[]} */ ...args) => lazy(() => schema()[name](...args.map(itself)));
      },
    },
  );
}

/**
 * The value, with the real schemas in place of the lazy ones.
 * @param {any} value
 * @returns {any}
 */
function itself(value) {
  if (Array.isArray(value)) return value.map(itself);
  if (typeof value !== 'object' || value === null) return value;
  const schema = value[MADE];
  if (schema !== undefined) return schema;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, itself(one)]));
}

/** @param {Schema} make a function of zod */
const lazily =
  (make) =>
  (/** @type {unknown[]} */ ...args) =>
    lazy(() => make(...args.map(itself)));

// The functions that the ACP library uses. If one is missing here, an agent of the tests fails when it starts.
export const array = lazily(zod.array);
export const boolean = lazily(zod.boolean);
export const int = lazily(zod.int);
export const intersection = lazily(zod.intersection);
export const literal = lazily(zod.literal);
export const number = lazily(zod.number);
export const object = lazily(zod.object);
export const preprocess = lazily(zod.preprocess);
export const record = lazily(zod.record);
export const string = lazily(zod.string);
export const union = lazily(zod.union);
export const unknown = lazily(zod.unknown);
export const url = lazily(zod.url);
export const NEVER = zod.NEVER;

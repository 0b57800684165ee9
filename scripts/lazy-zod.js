// zod for the small agents of the tests (test-program.js). The ACP library describes each message of the protocol by schemas of zod, which
// takes most of the time of a start. Here a schema is made when it is first used: the same checks, of the few messages that come.
import * as zod from 'zod/v4';

const MADE = Symbol('the schema itself');
/** What is asked of a schema; all else makes another one of it. */
const USES = new Set(['parse', 'safeParse', 'parseAsync', 'safeParseAsync']);

/** @typedef {any} Schema the types of zod are of no use here: nobody writes against this module */

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
 * With the schemas in it made.
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

// Those that the ACP library uses; another one would be missing as soon as an agent is started.
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

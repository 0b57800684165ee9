import { asSentence, ThroughlineError } from '../errors.ts';
import { isObject } from '../turn/content.ts';
import { shown } from './arguments.ts';

/*
 * Schemas of what callers write: settings, options of agents, task plans. One schema checks a value at run time, gives its TypeScript
 * type (`Input`), and is printed as JSON Schema (`json`) for editors. Why without a library: see docs/decisions/0005.
 */

/** Where a value is: `['tasks', 2, 'gate']`. */
export type Path = readonly (string | number)[];

/** What is wrong with the value at a path. `known`: its name is not one of these. `must`: what it must be. `says`: a sentence. */
export type Wrong =
  | { readonly known: readonly string[] }
  | { readonly must: string; readonly value?: { readonly is: unknown } }
  | { readonly says: string; readonly hint?: string };

/** Makes the error for the caller. */
export type Report = (at: Path, wrong: Wrong) => ThroughlineError;

export type JsonSchema = { readonly [word: string]: unknown };

/** `In`: what a caller writes. `Out`: what is read from it. */
export interface Schema<In, Out = In> {
  readonly json: JsonSchema;
  /** In words, after "must be". */
  readonly must: string;
  /** Throws what `report` makes. */
  read(value: unknown, at: Path, report: Report): Out;
  /** For the compiler only. */
  readonly takes?: (value: In) => void;
}

export type Input<S> = S extends { readonly takes?: (value: infer In) => void } ? In : never;
export type Output<S> = S extends { read(value: unknown, at: Path, report: Report): infer Out } ? Out : never;

/** A value that is checked and used as it is. `hidden`: messages do not show it, because it may be a secret. */
export function value<T>(
  isValid: (value: unknown) => boolean,
  must: string,
  json: JsonSchema,
  { hidden = false } = {},
): Schema<T> {
  return {
    json,
    must,
    read(value, at, report) {
      if (isValid(value)) return value as T;
      throw report(at, hidden ? { must } : { must, value: { is: value } });
    },
  };
}

const isText = (value: unknown): value is string => typeof value === 'string' && value !== '';
const isWhole = (value: unknown): value is number => Number.isSafeInteger(value);

export const text = value<string>(isText, 'a non-empty text', { type: 'string', minLength: 1 });
export const flag = value<boolean>((one) => typeof one === 'boolean', 'true or false', { type: 'boolean' });

/** A text that matches the pattern. */
export function matching(pattern: RegExp, must: string, options: { hidden?: boolean } = {}): Schema<string> {
  const isMatch = (one: unknown) => typeof one === 'string' && pattern.test(one);
  return value<string>(isMatch, must, { type: 'string', pattern: pattern.source }, options);
}

export const environmentVariable = matching(/^[A-Za-z_][A-Za-z0-9_]*$/, 'the name of an environment variable');

export function isCommand(words: unknown): words is readonly string[] {
  return Array.isArray(words) && words.length > 0 && words[0] !== '' && words.every((one) => typeof one === 'string');
}

export const command = value<readonly string[]>(isCommand, 'a list of texts: the program, then its arguments', {
  type: 'array',
  items: { type: 'string' },
  minItems: 1,
});

/** `of`: what is counted, in words: " of milliseconds". */
export function whole({
  least,
  most = Number.MAX_SAFE_INTEGER,
  of = '',
}: {
  least: number;
  most?: number;
  of?: string;
}) {
  const range = most < Number.MAX_SAFE_INTEGER ? ` from ${least} to ${most}` : of === '' ? `, ${least} or more` : '';
  return value<number>((one) => isWhole(one) && one >= least && one <= most, `a whole number${of}${range}`, {
    type: 'integer',
    minimum: least,
    ...(most < Number.MAX_SAFE_INTEGER ? { maximum: most } : {}),
  });
}

export function oneOf<const T extends string>(values: readonly T[]): Schema<T> {
  return value<T>((one) => values.some((each) => each === one), `one of ${values.join(', ')}`, { enum: values });
}

export function orNull<In, Out>(schema: Schema<In, Out>): Schema<In | null, Out | null> {
  const { type, enum: values } = schema.json;
  const json =
    typeof type === 'string'
      ? { ...schema.json, type: [type, 'null'] }
      : Array.isArray(values)
        ? { ...schema.json, enum: [...values, null] }
        : { anyOf: [{ type: 'null' }, schema.json] };
  return {
    json,
    must: `${schema.must}, or null`,
    read(value, at, report) {
      if (value === null) return null;
      return schema.read(value, at, (where, wrong) =>
        report(where, where === at && 'must' in wrong ? { ...wrong, must: `${wrong.must}, or null` } : wrong),
      );
    },
  };
}

/** The same with a description for editors. */
export function about<In, Out>(description: string, schema: Schema<In, Out>): Schema<In, Out> {
  return { ...schema, json: { ...schema.json, description } };
}

export function list<In, Out>(of: Schema<In, Out>, least = 0): Schema<readonly In[], readonly Out[]> {
  const must = least === 0 ? 'a list' : 'a list that is not empty';
  return {
    must,
    json: { type: 'array', items: of.json, ...(least > 0 ? { minItems: least } : {}) },
    read(value, at, report) {
      if (!Array.isArray(value) || value.length < least) throw report(at, { must, value: { is: value } });
      return Array.from(value, (one, index) => of.read(one, [...at, index], report));
    },
  };
}

/** An object whose names are the caller's own. */
export function byName<In, Out>(
  of: Schema<In, Out>,
): Schema<Readonly<Record<string, In>>, Readonly<Record<string, Out>>> {
  return {
    must: 'an object',
    json: { type: 'object', additionalProperties: of.json },
    read: (value, at, report) =>
      Object.fromEntries(
        entriesOf(value, at, report).map(([name, one]) => [name, of.read(one, [...at, name], report)]),
      ),
  };
}

/** A field that has to be there. All others may be left out. */
export type RequiredField<In, Out = In> = Schema<In, Out> & { readonly required: true };

export function required<In, Out>(schema: Schema<In, Out>): RequiredField<In, Out> {
  return { ...schema, required: true };
}

type Fields = Readonly<Record<string, Schema<never, unknown>>>;
type IsRequired<S> = S extends { readonly required: true } ? true : false;
export type ObjectInput<F extends Fields> = {
  readonly [K in keyof F as IsRequired<F[K]> extends true ? K : never]: Input<F[K]>;
} & { readonly [K in keyof F as IsRequired<F[K]> extends true ? never : K]?: Input<F[K]> | undefined };
export type ObjectOutput<F extends Fields> = {
  readonly [K in keyof F as IsRequired<F[K]> extends true ? K : never]: Output<F[K]>;
} & { readonly [K in keyof F as IsRequired<F[K]> extends true ? never : K]?: Output<F[K]> };

/** An object with these names and no others. A name that is set to undefined counts as left out. */
export function object<F extends Fields>(fields: F): Schema<Flat<ObjectInput<F>>, Flat<ObjectOutput<F>>> {
  const needed = Object.keys(fields).filter((name) => 'required' in (fields[name] as object));
  return {
    must: 'an object',
    json: {
      type: 'object',
      additionalProperties: false,
      ...(needed.length > 0 ? { required: needed } : {}),
      properties: Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, field.json])),
    },
    read(value, at, report) {
      const given = entriesOf(value, at, report).filter(([, one]) => one !== undefined);
      const unknown = given.find(([name]) => !Object.hasOwn(fields, name));
      if (unknown !== undefined) throw report([...at, unknown[0]], { known: Object.keys(fields) });
      const read = given.map(([name, one]) => [name, fields[name]?.read(one, [...at, name], report)] as const);
      for (const name of needed) {
        if (!read.some(([one]) => one === name)) fields[name]?.read(undefined, [...at, name], report);
      }
      return Object.fromEntries(read) as never;
    },
  };
}

/** Makes the compiler show the fields instead of the types that they were computed from. */
export type Flat<T> = T extends infer Whole ? { [K in keyof Whole]: Whole[K] } : never;

type Variants = Readonly<Record<string, Schema<never, object>>>;

/** An object of one of several kinds; its field `tag` says which. */
export function kinds<Tag extends string, V extends Variants>(
  tag: Tag,
  variants: V,
): Schema<{ [K in keyof V]: Input<V[K]> }[keyof V], { [K in keyof V]: Output<V[K]> }[keyof V]> {
  const names = Object.keys(variants);
  return {
    must: 'an object',
    json: {
      type: 'object',
      required: [tag],
      properties: { [tag]: { enum: names } },
      oneOf: names.map((name) => variants[name]?.json),
    },
    read(value, at, report) {
      const [, kind] = entriesOf(value, at, report).find(([name]) => name === tag) ?? [];
      const variant = typeof kind === 'string' && Object.hasOwn(variants, kind) ? variants[kind] : undefined;
      if (variant === undefined)
        throw report([...at, tag], { must: `one of ${names.join(', ')}`, value: { is: kind } });
      return variant.read(value, at, report) as never;
    },
  };
}

function entriesOf(value: unknown, at: Path, report: Report): [string, unknown][] {
  if (isObject(value)) return Object.entries(value);
  throw report(at, { must: 'an object', value: { is: value } });
}

/** The same schema with a further check of the whole value. `check` returns what is wrong; null: nothing. */
export function checked<In, Out>(schema: Schema<In, Out>, check: (value: Out) => Wrong | null): Schema<In, Out> {
  return {
    ...schema,
    read(value, at, report) {
      const read = schema.read(value, at, report);
      const wrong = check(read);
      if (wrong !== null) throw report(at, wrong);
      return read;
    },
  };
}

/** Converts the value. `make` returns null for a value that is not valid. */
export function made<In, Out>(schema: Schema<In>, must: string, make: (value: unknown) => Out | null): Schema<In, Out> {
  return {
    json: schema.json,
    must,
    read(value, at, report) {
      const out = make(value);
      if (out === null) throw report(at, { must, value: { is: value } });
      return out;
    },
  };
}

/** Only for the type and the JSON Schema. The value is read in another way. */
export function either<A, B>(one: Schema<A, unknown>, other: Schema<B, unknown>): Schema<A | B> {
  return {
    json: { anyOf: [one.json, other.json] },
    must: `${one.must}, or ${other.must}`,
    read: (value, at, report) => {
      throw report(at, { must: `${one.must}, or ${other.must}`, value: { is: value } });
    },
  };
}

/** `agents.claude.options`, `tasks[2].gate`. */
export function dotted(path: Path): string {
  return path
    .map((part) => (typeof part === 'number' ? `[${part}]` : `.${part}`))
    .join('')
    .replace(/^\./, '');
}

/** Makes `invalid` errors that name the value: `Settings: "agents.a.model" must be a non-empty text, not 7.` */
export function invalidValue({ prefix = '', hint }: { prefix?: string; hint?: string } = {}): Report {
  return (at, wrong) => {
    const own = 'says' in wrong ? wrong.hint : undefined;
    return new ThroughlineError('invalid', asSentence(`${prefix}${wordsOf(at, wrong)}`), { hint: own ?? hint });
  };
}

function wordsOf(at: Path, wrong: Wrong): string {
  if ('says' in wrong) return wrong.says;
  const name = `"${dotted(at)}"`;
  if ('known' in wrong) return `${name} is not known; known are ${wrong.known.join(', ')}`;
  return `${name} must be ${wrong.must}${wrong.value === undefined ? '' : `, not ${shown(wrong.value.is)}`}`;
}

import * as fc from 'fast-check';

/** Generates values that a JSON Schema of the document allows, and sometimes a text that it does not allow. */
export function fromSchema(
  schema: Schema,
  document: { components: { schemas: Record<string, Schema> } },
): fc.Arbitrary<unknown> {
  const generate = (inner: Schema): fc.Arbitrary<unknown> => fromSchema(inner, document);
  if (schema.$ref !== undefined) {
    const name = schema.$ref.split('/').at(-1) ?? '';
    return generate(document.components.schemas[name] as Schema);
  }
  if (schema.const !== undefined) return fc.constant(schema.const);
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum);
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices !== undefined) return fc.oneof(...choices.map(generate));
  switch (schema.type) {
    case 'string':
      if (schema.pattern !== undefined) return fc.oneof(fc.stringMatching(new RegExp(schema.pattern)), text);
      return text.map((value) => value.slice(0, schema.maxLength ?? 5_000));
    case 'integer':
    case 'number':
      return fc.oneof(fc.integer({ min: schema.minimum ?? -9, max: 9 }), fc.constant(2 ** 53 - 1));
    case 'boolean':
      return fc.boolean();
    case 'null':
      return fc.constant(null);
    case 'array':
      return fc.array(generate(schema.items ?? {}), { minLength: schema.minItems ?? 0, maxLength: 3 });
    case 'object': {
      const fields = Object.entries(schema.properties ?? {}).map(([name, inner]) => [name, generate(inner)] as const);
      const requiredKeys = schema.required ?? [];
      const known = fc.record(Object.fromEntries(fields), { requiredKeys } as object);
      if (schema.additionalProperties === false) return known;
      return fc
        .tuple(known, fc.dictionary(text, fc.jsonValue({ maxDepth: 2 }), { maxKeys: 2 }))
        .map(([described, additional]) => ({ ...additional, ...(described as object) }));
    }
    default:
      return fc.jsonValue({ maxDepth: 3 });
  }
}

/** Texts that often cause errors: empty, blank, with unpaired surrogates, control characters or other scripts, very long. */
export const text: fc.Arbitrary<string> = fc.oneof(
  { weight: 4, arbitrary: fc.string({ unit: 'grapheme', maxLength: 20 }) },
  { weight: 2, arbitrary: fc.string({ unit: 'binary', maxLength: 20 }) },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      '',
      ' ',
      '\0',
      '\ud800',
      '__proto__',
      'constructor',
      '../../etc/passwd',
      "' OR 1=1 --",
      '%00',
      '%',
      'x'.repeat(600),
    ),
  },
);

/** The same value with one change: a field is left out, added or replaced. */
export function withOneChange(values: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> {
  return fc.tuple(values, text, fc.jsonValue({ maxDepth: 2 }), fc.nat()).map(([value, name, other, pick]) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return other;
    const keys = Object.keys(value);
    const key = keys[pick % Math.max(keys.length, 1)] ?? name;
    if (pick % 3 === 0) return Object.fromEntries(Object.entries(value).filter(([field]) => field !== key));
    return Object.fromEntries([...Object.entries(value), [pick % 3 === 1 ? name : key, other]]);
  });
}

interface Schema {
  readonly $ref?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly type?: string;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly minimum?: number;
  readonly items?: Schema;
  readonly minItems?: number;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: unknown;
}

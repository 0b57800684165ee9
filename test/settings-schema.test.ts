import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { settingsSchema } from '../scripts/settings-schema.ts';
import { ADAPTERS, parseSettings } from '../src/core/input/settings.ts';
import { faultOf } from './values/thrown.ts';

// Settings are described once: in `src/core/input/settings.ts`, and the options of each adapter beside it. The schema for editors is
// generated from that, and must be up to date.

interface Schema {
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly pattern?: string;
  readonly minLength?: number;
  readonly minimum?: number;
  readonly exclusiveMinimum?: number;
  readonly minItems?: number;
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: boolean | Schema;
  readonly required?: readonly string[];
}

const schema: Schema = JSON.parse(readFileSync(new URL('../throughline.schema.json', import.meta.url), 'utf8'));

test('the schema for editors agrees with the descriptions in the program', () => {
  const hint = 'write it again with "node scripts/settings-schema.ts", then "npm run format"';
  expect(schema, hint).toEqual(JSON.parse(JSON.stringify(settingsSchema())));
});

/** The keywords of JSON Schema that our schema uses. The test fails at another keyword. */
const KEYWORDS: Record<string, (value: never, rule: never) => boolean> = {
  type: (value: unknown, rule: string | string[]) => [rule].flat().some((type) => isOfType(type, value)),
  anyOf: (value: unknown, rule: Schema[]) => rule.some((one) => accepts(one, value)),
  oneOf: (value: unknown, rule: Schema[]) => rule.filter((one) => accepts(one, value)).length === 1,
  enum: (value: unknown, rule: unknown[]) => rule.includes(value),
  pattern: (value: unknown, rule: string) => typeof value !== 'string' || new RegExp(rule).test(value),
  minLength: (value: unknown, rule: number) => typeof value !== 'string' || value.length >= rule,
  minimum: (value: unknown, rule: number) => typeof value !== 'number' || value >= rule,
  exclusiveMinimum: (value: unknown, rule: number) => typeof value !== 'number' || value > rule,
  minProperties: (value: unknown, rule: number) =>
    !isOfType('object', value) || Object.keys(value as object).length >= rule,
  maximum: (value: unknown, rule: number) => typeof value !== 'number' || value <= rule,
  minItems: (value: unknown, rule: number) => !Array.isArray(value) || value.length >= rule,
  items: (value: unknown, rule: Schema) => !Array.isArray(value) || value.every((one) => accepts(rule, one)),
  propertyNames: (value: object, rule: Schema) =>
    !isOfType('object', value) || Object.keys(value).every((name) => accepts(rule, name)),
  required: (value: object, rule: string[]) =>
    !isOfType('object', value) || rule.every((name) => Object.hasOwn(value, name)),
  properties: (value: object, rule: Record<string, Schema>) =>
    !isOfType('object', value) ||
    Object.entries(value).every(([name, inner]) => !Object.hasOwn(rule, name) || accepts(rule[name] as Schema, inner)),
};

function accepts(part: Schema, value: unknown): boolean {
  return Object.entries(part).every(([keyword, rule]) => {
    if (['$schema', 'title', 'description'].includes(keyword)) return true;
    if (keyword === 'additionalProperties') return acceptsOthers(part, value);
    const isValid = KEYWORDS[keyword];
    if (isValid === undefined) throw new Error(`this test does not support the keyword "${keyword}"`);
    return isValid(value as never, rule as never);
  });
}

function acceptsOthers({ properties = {}, additionalProperties: others = true }: Schema, value: unknown): boolean {
  if (!isOfType('object', value)) return true;
  const rest = Object.entries(value as object).filter(([name]) => !Object.hasOwn(properties, name));
  return typeof others === 'boolean' ? others || rest.length === 0 : rest.every(([, inner]) => accepts(others, inner));
}

function isOfType(type: string, value: unknown): boolean {
  if (type === 'integer') return Number.isInteger(value);
  if (type === 'array') return Array.isArray(value);
  if (type === 'null') return value === null;
  if (type === 'object') return typeof value === 'object' && value !== null && !Array.isArray(value);
  return typeof value === type;
}

/** Limits on spending, valid and invalid. */
const AMOUNTS = ['5 USD', '$2.50', '200k tokens', '7', '1 EUR', { usd: 2.5 }, { tokens: 9 }, { usd: 0 }, { eur: 1 }];

const agents = schema.properties?.agents?.additionalProperties as Schema;
const agentOf = (adapter: string) =>
  agents.oneOf?.find(({ properties }) => properties?.adapter?.enum?.includes(adapter)) as Schema;
const agentSchema = agentOf('claude-sdk');
const TEXT = 'sqlite:a'; // also the name of an agent, so that it is a valid `defaultAgent`
const agent = (fields: object) => ({ agents: { [TEXT]: { adapter: 'claude-sdk', ...fields } } });

/** Every object in the settings that has properties. `put` returns valid settings that contain a value of that object. */
const PLACES: [name: string, part: Schema, put: (value: object) => object][] = [
  ['the settings', schema, (value) => ({ ...agent({}), ...value })],
  ['an agent', agentSchema, agent],
  ['limits of an agent', agentSchema.properties?.limits as Schema, (value) => agent({ limits: value })],
  ...(['restore', 'sandbox', 'lock', 'permissions', 'limits', 'tasks', 'turns'] as const).map(
    (name): [string, Schema, (value: object) => object] => [
      name,
      schema.properties?.[name] as Schema,
      (value) => ({ [name]: value }),
    ],
  ),
];

/** The known names, from the error message about an unknown one. */
function acceptedNames(settings: unknown): string[] {
  const fault = faultOf(() => parseSettings(settings));
  const [, names] = /known are ([^.]*)/.exec(`${fault?.message}`) ?? [];
  return names?.split(', ') ?? [];
}

describe.each(PLACES)('for %s', (_, part, put) => {
  const properties = Object.entries(part.properties ?? {});

  test('the schema and the program accept the same names', () => {
    expect(part.additionalProperties).toBe(false);
    expect(acceptedNames(put({ strange: 1 })).toSorted()).toEqual(properties.map(([name]) => name).toSorted());
  });

  test('the schema and the program accept the same values', () => {
    const samples = [
      TEXT,
      '',
      0,
      1.5,
      -1,
      true,
      false,
      null,
      [],
      [TEXT],
      [1],
      {},
      { a: TEXT },
      { a: 1 },
      { a: '5 USD' },
    ];
    for (const [name, property] of properties) {
      // `$schema` is for editors, agents are another entry of PLACES, and each adapter checks its options.
      if (['$schema', 'agents', 'options', 'adapter'].includes(name)) continue;
      for (const value of [...samples, ...(property.enum ?? []), ...(property.anyOf ? AMOUNTS : [])]) {
        // An object with properties is another entry of PLACES.
        const isObject = property.properties !== undefined;
        const isAccepted = faultOf(() => parseSettings(put({ [name]: value }))) === null;
        if (!isObject) expect([name, value, isAccepted]).toEqual([name, value, accepts(property, value)]);
      }
    }
  });
});

test('the schema and the program accept the same adapters, and the same names for each', () => {
  expect(agents.properties?.adapter?.enum).toEqual(ADAPTERS);
  for (const adapter of ADAPTERS) {
    const names = acceptedNames({ agents: { a: { adapter, strange: 1 } } });
    expect(Object.keys(agentOf(adapter).properties ?? {}).toSorted()).toEqual(names.toSorted());
  }
  expect(accepts(schema, { agents: { a: {} } })).toBe(false);
});

test('the schema has the options of every adapter, and refuses a misspelt one', () => {
  const settings = (options: object) => ({ agents: { a: { adapter: 'acp', options } } });
  expect(accepts(schema, settings({ mode: 'plan', mcpServers: { notes: { command: 'notes' } } }))).toBe(true);
  expect(accepts(schema, settings({ moed: 'plan' }))).toBe(false);
  expect(accepts(schema, settings({ mcpServers: { notes: { url: 'http://x' } } }))).toBe(false);
});

test.each(['settings', 'limits', 'claude'])(
  'the schema and the program accept the examples of docs/%s.md',
  (document) => {
    const text = readFileSync(new URL(`../docs/${document}.md`, import.meta.url), 'utf8');
    const blocks = [...text.matchAll(/```json\n(.*?)```/gs)].map(([, json]) => JSON.parse(json ?? ''));
    expect(blocks.length).toBeGreaterThan(0);
    for (const settings of blocks) {
      expect(faultOf(() => parseSettings(settings))).toBeNull();
      expect(accepts(schema, settings)).toBe(true);
    }
  },
);

// `npm run api`: writes docs/http-api.txt, the HTTP interface as text: its number, the operations, and the fields of all values. Reviewers
// see a change of the interface as a change of that file. A test compares the two (test/http-api.test.ts), and says when to raise the
// number.
import { writeFileSync } from 'node:fs';
import { type OpenApi, openApi } from '../src/wire/openapi.ts';
import { INTERFACE } from '../src/wire/operations/operation.ts';

export const FILE = new URL('../docs/http-api.txt', import.meta.url);

interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | Schema;
}

export function httpApi(): string {
  const { paths, components } = openApi('');
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => lineOf(`${method.toUpperCase()} ${path}`, operation)),
  );
  const values = Object.entries(components.schemas).map(([name, schema]) =>
    [name, ...fieldsOf(schema as Schema, '  ')].join('\n'),
  );
  return `${[`interface ${INTERFACE}`, operations.toSorted().join('\n'), ...values.toSorted()].join('\n\n')}\n`;
}

type DescribedOperation = OpenApi['paths'][string][string];

/** `GET /v1/search ?q limit? -> SearchHits`: one line for an operation. */
function lineOf(
  address: string,
  { parameters = [], requestBody, responses, ...operation }: DescribedOperation,
): string {
  const query = parameters.filter((one) => one.in === 'query');
  const asked = query.map(({ name, required, schema }) => `${name}${required ? '' : '?'}: ${typeOf(schema as Schema)}`);
  const body = requestBody && schemaIn(requestBody);
  const [[status, answer] = ['', {}]] = Object.entries(responses);
  return [
    address,
    ...(asked.length > 0 ? [`?${asked.join(', ')}`] : []),
    ...(body ? [body] : []),
    `-> ${status} ${schemaIn(answer as object)} (${operation['x-scope']})`,
  ].join(' ');
}

function schemaIn(part: object): string {
  const [content] = Object.values((part as { content?: object }).content ?? {}) as { schema: Schema }[];
  return content ? typeOf(content.schema) : 'nothing';
}

/** One line for each field. A value without fields is one line, its type. */
function fieldsOf(schema: Schema, indent: string): string[] {
  const variants = schema.anyOf ?? schema.oneOf;
  if (variants?.some(({ properties }) => properties)) {
    return variants.flatMap((one, index) => [
      `${indent}| ${kindOf(one) ?? index + 1}`,
      ...fieldsOf(one, `${indent}  `),
    ]);
  }
  if (schema.properties === undefined) return [`${indent}${typeOf(schema)}`];
  return Object.entries(schema.properties).flatMap(([name, field]) => {
    const head = `${indent}${name}${schema.required?.includes(name) ? '' : '?'}: `;
    const inner = field.items ?? field;
    const isInner = [inner, ...(inner.anyOf ?? inner.oneOf ?? [])].some(({ properties }) => properties);
    return [`${head}${typeOf(field)}`, ...(isInner ? fieldsOf(withFields(inner), `${indent}  `) : [])];
  });
}

/** What tells a variant from the others: `turn.ended`. */
function kindOf({ properties = {} }: Schema): unknown {
  return Object.values(properties).find((field) => field.const !== undefined)?.const;
}

/** The only variant that has fields, where the others have none: `null | {…}`. */
function withFields(schema: Schema): Schema {
  const having = [schema.anyOf ?? schema.oneOf ?? []].flat().filter(({ properties }) => properties);
  return having.length === 1 && having[0] ? having[0] : schema;
}

function typeOf(schema: Schema): string {
  const { $ref, type, enum: values, anyOf, oneOf, items, properties, additionalProperties } = schema;
  if ($ref !== undefined) return $ref.replace(/^.*\//, '');
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (values !== undefined) return values.map((one) => JSON.stringify(one)).join(' | ');
  const variants = anyOf ?? oneOf;
  if (variants !== undefined) return [...new Set(variants.map(typeOf))].join(' | ');
  if (items !== undefined) return `list of ${typeOf(items)}`;
  if (properties !== undefined) return '{}';
  if (typeof additionalProperties === 'object') return `by name: ${typeOf(additionalProperties)}`;
  return type === undefined ? 'any' : [type].flat().join(' | ');
}

if (import.meta.main) writeFileSync(FILE, httpApi());

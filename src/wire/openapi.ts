import * as z from 'zod';
import { BASE_PATH, type Operation, OWNER_HEADER } from './operations/operation.ts';
import { OPERATIONS } from './operations.ts';
import { Problem } from './problem.ts';
import { PROBLEM_TYPE } from './problem-codes.ts';
import { NAMED } from './registry.ts';
import { type OperationName, ROUTES } from './routes.ts';
import { Id } from './values/common.ts';

const REFERENCE = '#/components/schemas/';
const BEARER = `A key, or the token of the data home. The token, and a key with the scope \`act-as\`, may name the owner that they act for (\`${OWNER_HEADER}\`, percent-encoded).`;
const COOKIE = 'Set by the one-time link. Its name ends with the port of the server.';

/** The OpenAPI 3.1 document, made from the schemas that check requests. */
export function openApi(version: string) {
  const paths: Record<string, Record<string, DescribedOperation>> = {};
  for (const name of Object.keys(ROUTES) as OperationName[]) {
    const path = `${BASE_PATH}${ROUTES[name].path}`;
    paths[path] = { ...paths[path], [ROUTES[name].method.toLowerCase()]: described(name, OPERATIONS[name]) };
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Throughline',
      version,
      description: 'Conversations that outlive agent sessions.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    security: [{ bearer: [] }, { cookie: [] }],
    paths,
    components: {
      schemas: componentSchemas(),
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer', description: BEARER },
        cookie: { type: 'apiKey', in: 'cookie', name: 'throughline-7717', description: COOKIE },
      },
    },
  };
}

export type OpenApi = ReturnType<typeof openApi>;
export type DescribedOperation = ReturnType<typeof described>;

interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly required: boolean;
  readonly style?: 'form';
  readonly explode?: boolean;
  readonly schema: object;
}

function described(name: OperationName, operation: Operation) {
  const { summary, query, body, stream, status = 200, answer, scope } = operation;
  const parameters = [...pathParameters(ROUTES[name].path), ...queryParameters(query)];
  if (stream && body === undefined)
    parameters.push({ name: 'Last-Event-ID', in: 'header', required: false, schema: { type: 'string' } });
  const type = stream ? 'text/event-stream' : 'application/json';
  return {
    operationId: name,
    summary,
    'x-scope': scope,
    ...(parameters.length > 0 && { parameters }),
    ...(body && {
      requestBody: {
        required: !body.safeParse({}).success,
        content: { 'application/json': { schema: schemaOf(body) } },
      },
    }),
    responses: {
      [status]: {
        description: stream
          ? 'A stream of server-sent events. The data of each event is this value as JSON.'
          : 'Success.',
        content: { [type]: { schema: schemaOf(answer) } },
      },
      default: { description: 'An error.', content: { [PROBLEM_TYPE]: { schema: schemaOf(Problem) } } },
    },
  };
}

function pathParameters(path: string): Parameter[] {
  const names = path.matchAll(/\{(\w+)\}/g);
  return Array.from(names, ([, name = '']) => ({ name, in: 'path', required: true, schema: parameterSchema(Id) }));
}

function queryParameters(fields: z.ZodObject | undefined): Parameter[] {
  if (fields === undefined) return [];
  const needed = new Set(z.toJSONSchema(fields, { io: 'input' }).required);
  return Object.entries(fields.shape).map(([name, field]) => {
    const schema = parameterSchema(field as z.ZodType);
    // Several values are one text, separated by commas.
    const listed = (schema as { type?: string }).type === 'array' && { style: 'form' as const, explode: false };
    return { name, in: 'query', required: needed.has(name), ...listed, schema };
  });
}

/** Describes a number as a number, although it is text in the URL. Cursors are described as text. */
function parameterSchema(schema: z.ZodType): object {
  const meaning = plain(z.toJSONSchema(schema, { io: 'output' }));
  return (meaning as { type?: string }).type === 'object' ? plain(z.toJSONSchema(schema, { io: 'input' })) : meaning;
}

/** Every body and every answer has a name. */
function schemaOf(schema: z.ZodType): object {
  const id = NAMED.get(schema)?.id;
  if (id === undefined) throw new Error('A schema of the interface has no name; use named().');
  return { $ref: `${REFERENCE}${id}` };
}

function componentSchemas(): Record<string, object> {
  const { schemas } = z.toJSONSchema(NAMED, { io: 'input', uri: (id) => `${REFERENCE}${id}` });
  return Object.fromEntries(Object.entries(schemas).map(([id, schema]) => [id, plain(schema)]));
}

/** Without the fields that only a separate schema file needs. */
function plain(schema: object): object {
  const { $schema: _, $id: __, id: ___, ...rest } = schema as Record<string, unknown>;
  return rest;
}

import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect } from 'vitest';
import { openApi } from '../../../../src/wire/openapi.ts';
import { BASE_PATH } from '../../../../src/wire/operations/operation.ts';
import { type OperationName, ROUTES } from '../../../../src/wire/routes.ts';

/** The OpenAPI document as the server returns it. These tests check every answer against it. */
export const DOCUMENT = JSON.parse(JSON.stringify(openApi('test')));

const ajv = new Ajv2020({ strict: false, allErrors: true });
ajv.addSchema({ ...DOCUMENT, $id: 'api' });
const validators = new Map<string, ReturnType<typeof ajv.compile>>();

/** The operation with this method and path. Null: the document has none. */
export function operationAt(method: string, path: string): OperationName | null {
  const [plain = ''] = path.split('?', 1);
  const names = Object.keys(ROUTES) as OperationName[];
  const found = names.find((name) => {
    const pattern = `${BASE_PATH}${ROUTES[name].path}`.replaceAll(/\{\w+\}/g, '[^/]+');
    return ROUTES[name].method === method && new RegExp(`^${pattern}$`).test(plain);
  });
  return found ?? null;
}

/** Fails unless the document describes such an answer. `body`: the value; for a stream, the data of one event. */
export function expectConform(name: OperationName, status: number, type: string, body: unknown): void {
  const { method, path } = ROUTES[name];
  const described = DOCUMENT.paths[`${BASE_PATH}${path}`][method.toLowerCase()];
  const [plain = ''] = type.split(';', 1);
  const response = described.responses[String(status)] ?? described.responses.default;
  const schema = response.content[plain]?.schema;
  expect(schema, `${name} answers ${status} with ${plain}, which the document does not describe`).toBeDefined();
  expectValid(schema.$ref, body, `${name} ${status}`);
}

function validatorOf(reference: string): ReturnType<typeof ajv.compile> {
  const validate = validators.get(reference) ?? ajv.compile({ $ref: `api${reference}` });
  validators.set(reference, validate);
  return validate;
}

export function isValid(reference: string, value: unknown): boolean {
  return validatorOf(reference)(value) === true;
}

export function expectValid(reference: string, value: unknown, what: string): void {
  const validate = validatorOf(reference);
  if (validate(value)) return;
  expect.fail(
    `${what} is not a ${reference}: ${ajv.errorsText(validate.errors)}\n${JSON.stringify(value).slice(0, 500)}`,
  );
}

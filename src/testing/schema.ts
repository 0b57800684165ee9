import { isJson, type Json } from './request.ts';

/** The plainest value that a JSON schema (or Gemini's, whose types are in capitals) allows, for errands that want their answer in a certain form. */
export function filled(schema: unknown): unknown {
  if (!isJson(schema)) return null;
  if ('const' in schema) return schema.const;
  if (Array.isArray(schema.enum)) return schema.enum[0];
  const [choice] = [schema.anyOf, schema.oneOf].flatMap((list) => (Array.isArray(list) ? list : []));
  if (choice !== undefined) return filled(choice);
  const type = Array.isArray(schema.type) ? schema.type[0] : schema.type;
  return PLAIN[String(type).toLowerCase()]?.(schema) ?? null;
}

const PLAIN: Record<string, (schema: Json) => unknown> = {
  string: () => 'a-conversation',
  number: () => 0,
  integer: () => 0,
  boolean: () => false,
  array: () => [],
  object: ({ properties }) =>
    Object.fromEntries(Object.entries(isJson(properties) ? properties : {}).map(([key, of]) => [key, filled(of)])),
};

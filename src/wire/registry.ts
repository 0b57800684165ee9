import * as z from 'zod';

/** Every schema with a name in the OpenAPI document. */
export const NAMED = z.registry<{ id: string }>();

/** Gives a schema its name in the OpenAPI document. */
export function named<T extends z.ZodType>(id: string, schema: T): T {
  NAMED.add(schema, { id });
  return schema;
}

export function namedObject<T extends z.ZodRawShape>(id: string, fields: T) {
  return named(id, z.strictObject(fields));
}

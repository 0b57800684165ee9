import * as z from 'zod';

/** Every schema that has a name: under it, it stands in the OpenAPI document. */
export const NAMED = z.registry<{ id: string }>();

/** Gives a schema the name under which others refer to it. */
export function named<T extends z.ZodType>(id: string, schema: T): T {
  NAMED.add(schema, { id });
  return schema;
}

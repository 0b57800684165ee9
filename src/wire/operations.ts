import type * as z from 'zod';
import { conversations } from './operations/conversations.ts';
import type { Operation } from './operations/operation.ts';
import { rest } from './operations/rest.ts';
import { sandboxes } from './operations/sandboxes.ts';
import { tasks } from './operations/tasks.ts';
import { tracker } from './operations/tracker.ts';
import { turns } from './operations/turns.ts';
import type { OperationName } from './routes.ts';

/** All operations below `/v1`. The server, its clients and the OpenAPI document are made from this table and `routes.ts`. */
export const OPERATIONS = {
  ...conversations,
  ...turns,
  ...tasks,
  ...sandboxes,
  ...tracker,
  ...rest,
} as const satisfies Record<OperationName, Operation>;

/** The values of a part of an operation; an empty object when it has no such part. */
export type PartOf<N extends OperationName, Part extends 'query' | 'body' | 'answer'> = (typeof OPERATIONS)[N] extends {
  readonly [P in Part]: infer Schema extends z.ZodType;
}
  ? z.infer<Schema>
  : Record<never, never>;

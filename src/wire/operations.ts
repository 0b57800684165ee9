import { conversations } from './operations/conversations.ts';
import { rest } from './operations/rest.ts';
import { tasks } from './operations/tasks.ts';
import { turns } from './operations/turns.ts';

/** All operations below `/v1`. The server, its clients and the OpenAPI document are made from this table. */
export const OPERATIONS = { ...conversations, ...turns, ...tasks, ...rest } as const;

export type OperationName = keyof typeof OPERATIONS;

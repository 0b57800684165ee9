import type { Permission, ThroughlineClient } from 'throughline/client';
import { describeError } from './errors.ts';

/** Answers a question. If it has already ended, returns how; other errors are thrown. */
export async function answerPermission(tl: ThroughlineClient, id: string, optionId: string): Promise<Permission> {
  try {
    return await tl.answer(id, optionId);
  } catch (error) {
    if (describeError(error).code !== 'conflict') throw error;
    const permission = await tl.engine.permission(id);
    if (permission.state === 'open') throw error;
    return permission;
  }
}

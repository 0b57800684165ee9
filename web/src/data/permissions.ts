import type { Permission, ThroughlineClient } from 'throughline/client';
import { toldOf } from './errors.ts';

export function readPermission(tl: ThroughlineClient, id: string): Promise<Permission> {
  return tl.engine.permission(id);
}

/** Answers a question. When somebody was faster, or it is over, the question as it is now; else throws. */
export async function answerPermission(tl: ThroughlineClient, id: string, optionId: string): Promise<Permission> {
  try {
    return await tl.answer(id, optionId);
  } catch (error) {
    if (toldOf(error).code !== 'conflict') throw error;
    const permission = await readPermission(tl, id);
    if (permission.state === 'open') throw error;
    return permission;
  }
}

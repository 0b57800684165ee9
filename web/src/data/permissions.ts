import type { Permission, ThroughlineClient } from 'throughline/client';
import { isTouch } from '../ui/screen.ts';
import { describeError } from './errors.ts';

/** A touch screen that is narrower is a phone. */
const PHONE_PX = 640;

/** Answers a question. If it has already ended, returns how; other errors are thrown. */
export async function answerPermission(tl: ThroughlineClient, id: string, optionId: string): Promise<Permission> {
  try {
    return await tl.answer(id, optionId, { from: isTouch() && innerWidth < PHONE_PX ? 'phone' : 'page' });
  } catch (error) {
    if (describeError(error).code !== 'conflict') throw error;
    const permission = await tl.engine.permission(id);
    if (permission.state === 'open') throw error;
    return permission;
  }
}

import { randomUUID } from 'node:crypto';
import { chunkText } from '../../../core/update.ts';
import type { Agent, AgentSession, OpenHow } from '../../../ports/agent.ts';
import type { OpenSandbox } from '../../../ports/sandbox.ts';

export interface ControlAnswer {
  readonly reply: string;
  /** What the agent said when asked to resume the saved session; null: it did. */
  readonly refusal: string | null;
}

/** What a program does that only keeps its session's id: it resumes that session, or else begins a new one and asks there. */
export async function askWithoutThroughline(
  { agent, sandbox }: { agent: Agent; sandbox: OpenSandbox },
  savedId: string,
  prompt: string,
): Promise<ControlAnswer> {
  const { signal } = new AbortController();
  const open = (how: OpenHow) => agent.open({ how, sandbox, noTools: false, signal });
  const resumed = await open({ kind: 'resume', id: savedId });
  if (resumed.ok) return { reply: await askOnce(resumed.session, prompt, signal), refusal: null };
  const begun = await open({ kind: 'new', id: null });
  if (!begun.ok) throw new Error(`The agent opens no session: ${begun.message}`);
  return { reply: await askOnce(begun.session, prompt, signal), refusal: resumed.message };
}

async function askOnce(session: AgentSession, prompt: string, signal: AbortSignal): Promise<string> {
  const content = [{ type: 'text', text: prompt }] as const;
  let reply = '';
  try {
    for await (const event of session.prompt({ id: randomUUID(), content, expected: null, signal })) {
      if (event.type === 'update') reply += chunkText(event.update) ?? '';
    }
  } finally {
    await session.close();
  }
  return reply;
}

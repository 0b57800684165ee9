import type { Conversation } from '../../core/conversation.ts';
import { noAgentGiven } from '../../core/errors.ts';
import { given } from '../../core/input/arguments.ts';
import { type ImportFrame, importSteps } from '../../core/input/messages.ts';
import { checkAgent } from '../../core/input/names.ts';
import { EXPORT_FORMAT, EXPORT_VERSION, type ExportedConversation } from '../../core/portable.ts';
import type { TurnRecord } from '../../core/turn/record.ts';
import { Pace } from '../../flow/pace.ts';
import type { Bounded, ImportOptions } from '../../ports/engine.ts';
import type { Store } from '../../ports/store.ts';
import type { EngineParts } from '../parts.ts';
import { SizeLimit } from '../reading/size-limit.ts';
import { allRecords, sessionsAsOpened } from '../reading/views.ts';
import { checkFreeKey, newConversation } from './conversations.ts';

/** Uses real time and not the clock of the engine: it measures how long the event loop is blocked. */
const PACE = new Pace(() => performance.now(), setImmediate);

export async function exportConversation(
  store: Store,
  conversation: Conversation,
  { most }: Bounded = {},
): Promise<ExportedConversation> {
  const limit = new SizeLimit(most);
  const records: TurnRecord[] = [];
  for await (const record of allRecords(store, conversation)) {
    limit.add(record);
    records.push(record);
  }
  const sessions = sessionsAsOpened(await store.sessions(conversation.owner, conversation.id));
  const { key, title, agent, restore } = conversation;
  return {
    format: EXPORT_FORMAT,
    version: EXPORT_VERSION,
    conversation: { key, title, agent, restore },
    records,
    sessions: sessions.map(({ id, agent, origin, parent, watermark }) => ({ id, agent, origin, parent, watermark })),
  };
}

/** Imports the history. The sessions are imported only as information: a native session from elsewhere is never used here. */
export async function importConversation(
  parts: EngineParts,
  owner: string,
  exported: unknown,
  options: ImportOptions,
): Promise<Conversation> {
  await checkFreeKey(parts.store, owner, options.key);
  checkAgent(parts, options.agent);
  const { defaultAgent } = parts.settings;
  const frame: ImportFrame = {
    agent: options.agent,
    now: parts.clock.now(),
    defaultAgent() {
      if (defaultAgent === null) throw noAgentGiven([...parts.agents.keys()]);
      return defaultAgent;
    },
  };
  const { conversation, records, sessions } = await PACE.run(importSteps(exported, frame));
  const spec = given({
    key: options.key ?? conversation.key ?? undefined,
    title: conversation.title || undefined,
    agent: conversation.agent ?? undefined,
    cwd: options.cwd,
    restore: conversation.restore,
  });
  return parts.store.importConversation(owner, await newConversation(parts, owner, spec), { records, sessions });
}

import { createHash, randomUUIDv7 } from 'node:crypto';
import { type Conversation, checkDriver } from '../../core/conversation.ts';
import { asSentence, hasCode, noSuchConversation, ThroughlineError } from '../../core/errors.ts';
import { given, shown } from '../../core/input/arguments.ts';
import { checkAgent, checkKey, checkName } from '../../core/input/names.ts';
import { checkWellFormed } from '../../core/input/well-formed.ts';
import { type Budget, parseBudget } from '../../core/limits/budget.ts';
import { parseRestore } from '../../core/restore/restore-settings.ts';
import { isWorktree, worktreeSandbox } from '../../core/sandbox/sandbox-id.ts';
import { type Choices, changeChoices, howToChoose, NOTHING_TO_CHOOSE, parseChoices } from '../../core/turn/choices.ts';
import type { Agent, AgentSession } from '../../ports/agent.ts';
import type { ConversationSpec, ForkOptions } from '../../ports/engine.ts';
import type { Worktrees } from '../../ports/sandbox.ts';
import type { NewConversation } from '../../ports/store/conversations.ts';
import type { Store } from '../../ports/store.ts';
import type { EngineParts } from '../parts.ts';

export async function findConversation(store: Store, owner: string, idOrKey: string): Promise<Conversation> {
  const found = await store.findConversation(owner, idOrKey);
  if (found === null) throw noSuchConversation(idOrKey);
  return found;
}

/** Finds the conversation by its key, or creates it. */
export async function ensureConversation(
  parts: EngineParts,
  owner: string,
  spec: ConversationSpec,
): Promise<Conversation> {
  const { store } = parts;
  checkAgent(parts, spec.agent);
  const fresh = await newConversation(parts, owner, spec);
  // Callers may give an id as the key: the id of a fork, for example, must not become the key of a new conversation.
  const known = spec.key === undefined ? null : await store.findConversation(owner, spec.key);
  if (chooses(spec)) {
    const name =
      known === null ? (spec.agent ?? parts.settings.defaultAgent) : await agentFor(parts, owner, known, spec);
    const agent = name === null ? undefined : parts.agents.get(name)?.agent;
    if (agent !== undefined) await checkChoices(agent, parseChoices(spec));
  }
  const { conversation, created } =
    known === null ? await store.ensureConversation(owner, fresh) : { conversation: known, created: false };
  if (created) return conversation;
  checkPinned(conversation, spec, fresh);
  const limit = fresh.limitPerDay ?? null;
  let now = spec.limitPerDay === undefined ? conversation : await store.setLimitPerDay(owner, conversation.id, limit);
  if (chooses(spec)) {
    const choices = changeChoices(now.choices, spec, await agentFor(parts, owner, now, spec));
    now = await store.setChoices(owner, now.id, choices);
  }
  const title = fresh.title?.trim() ?? null;
  if (title === null || (title === now.title && now.titleSource === 'caller')) return now;
  return store.setTitle(owner, conversation.id, title, 'caller');
}

/** Copies the records up to a turn into a new conversation; left out: up to the last one. */
export async function forkConversation(
  parts: EngineParts,
  source: Conversation,
  { turn, key, title, cwd }: ForkOptions,
): Promise<Conversation> {
  const n = turn ?? source.head;
  if (source.head === 0) {
    throw new ThroughlineError('invalid', 'There is nothing to fork: the conversation has no turns yet.', {
      hint: 'Fork it after its first turn has ended, or start another conversation.',
    });
  }
  if (!Number.isSafeInteger(n) || n < 1 || n > source.head) {
    throw new ThroughlineError('invalid', `Turn ${n} is not in the history of this conversation.`, {
      hint: `Choose a number from 1 to ${source.head}.`,
    });
  }
  const { id, owner, restore } = source;
  const agent = source.agent ?? undefined;
  // In the same directory, a fork has a worktree if its source has one.
  const worktree = cwd === undefined ? isWorktree(source.sandbox) : undefined;
  const spec = given({ agent, key, title, cwd: cwd ?? source.cwd ?? undefined, worktree, restore });
  await checkFreeKey(parts.store, owner, key);
  // The limit is copied, so that a fork does not avoid it.
  const fresh = {
    ...(await newConversation(parts, owner, spec)),
    limitPerDay: source.limitPerDay,
    choices: source.choices,
  };
  return parts.store.fork(owner, id, n, fresh);
}

/** Throws `conflict` if a conversation has this key, or has it as its id: one of the two could not be found any more. */
export async function checkFreeKey(store: Store, owner: string, key: string | undefined): Promise<void> {
  if (key === undefined || (await store.findConversation(owner, key)) === null) return;
  throw new ThroughlineError('conflict', `A conversation "${key}" exists already.`, { hint: 'Choose another key.' });
}

/** A caller cannot change what is pinned (R8); a different value is refused, not ignored (R7). */
function checkPinned(existing: Conversation, spec: ConversationSpec, asked: NewConversation): void {
  const refuse = (what: string, hint: string) => {
    throw new ThroughlineError(
      'refused',
      `The conversation "${existing.key ?? existing.id}" exists with another ${what}.`,
      { hint },
    );
  };
  const fork = 'It never changes; fork the conversation to have another.';
  checkDriver(existing);
  if (spec.cwd !== undefined && existing.cwd !== asked.cwd) refuse('working directory', fork);
  if (spec.sandbox !== undefined && existing.sandbox !== asked.sandbox) refuse('sandbox', fork);
  if (spec.worktree !== undefined && isWorktree(existing.sandbox) !== spec.worktree) refuse('kind of directory', fork);
  for (const name of Object.keys(asked.restore) as (keyof Conversation['restore'])[]) {
    if (existing.restore[name] !== asked.restore[name]) refuse(`restore.${name}`, 'Give it with the turn instead.');
  }
}

/** Checks what the caller gives, and decides everything that is pinned when the conversation is created (R8). */
export async function newConversation(
  parts: EngineParts,
  owner: string,
  spec: ConversationSpec,
): Promise<NewConversation> {
  const id = randomUUIDv7();
  if (spec.cwd !== undefined) checkWellFormed(spec.cwd, 'The working directory');
  const directory = spec.cwd === undefined ? null : await parts.sandboxes.checkDirectory(spec.cwd);
  const cwd = directory?.real ?? null;
  return {
    id,
    key: spec.key === undefined ? null : checkKey(spec.key, 'key'),
    title: spec.title === undefined ? null : checkName(spec.title, 'title'),
    agent: spec.agent ?? null,
    driver: 'worker',
    sandbox: await sandboxFor(parts, owner, { id, cwd }, spec),
    cwd,
    project: directory === null || directory.project === cwd ? null : directory.project,
    place: parts.sandboxes.place,
    restore: parseRestore(spec.restore),
    limitPerDay: parseLimitPerDay(spec.limitPerDay),
    choices: changeChoices({}, spec, spec.agent ?? parts.settings.defaultAgent),
  };
}

/**
 * Throws `refused` if it is known that the agent does not have these choices: by its adapter, or by what the living session has announced. What
 * is not known is tried when a turn runs.
 */
export async function checkChoices(agent: Agent, choices: Choices, living: AgentSession | null = null): Promise<void> {
  if (Object.keys(choices).length === 0) return;
  const why = living?.lacks?.(choices) ?? (await agent.lacks?.(choices)) ?? null;
  if (why === null) return;
  const hint = howToChoose(choices, {}, why !== NOTHING_TO_CHOOSE);
  throw new ThroughlineError('refused', asSentence(`${agent.name}: ${why}`), { hint });
}

function chooses({ model, mode, config }: ConversationSpec): boolean {
  return model !== undefined || mode !== undefined || config !== undefined;
}

/** The agent that the conversation's next turn goes to, unless it names another; null: there is none yet. */
async function agentFor(
  { store, settings: { defaultAgent } }: EngineParts,
  owner: string,
  { id: conversation, agent: first, head, open }: Conversation,
  { agent }: ConversationSpec,
): Promise<string | null> {
  if (agent !== undefined) return agent;
  if (head === 0 && open === 0) return first ?? defaultAgent;
  return store.agentFor(owner, { conversation, agent: null, defaultAgent });
}

function parseLimitPerDay(input: ConversationSpec['limitPerDay']): Budget | null {
  if (input === undefined || input === null) return null;
  const budget = parseBudget(input);
  if (budget !== null) return budget;
  throw new ThroughlineError('invalid', `A limit per day is like "2 USD" or "50k tokens", not ${shown(input)}.`);
}

async function sandboxFor(
  parts: EngineParts,
  owner: string,
  { id, cwd }: { readonly id: string; readonly cwd: string | null },
  { sandbox, worktree }: ConversationSpec,
): Promise<string> {
  const { worktrees } = parts.sandboxes;
  if (worktree === true) {
    if (sandbox !== undefined) {
      const message = 'A worktree belongs to one conversation: leave out "sandbox" or "worktree".';
      throw new ThroughlineError('invalid', message);
    }
    if (cwd === null) throw new ThroughlineError('invalid', 'A worktree needs "cwd": a directory in its repository.');
    if (worktrees === undefined) {
      throw new ThroughlineError('refused', 'The configured sandboxes have no worktrees.', {
        hint: 'Leave out "worktree", or use sandboxes whose files are on this machine.',
      });
    }
    await worktrees.check(cwd);
    return worktreeSandbox(id);
  }
  if (sandbox !== undefined) return namedSandbox(parts, owner, checkKey(sandbox, 'sandbox'));
  const byDefault = worktree === undefined && worktrees?.byDefault === true && cwd !== null;
  return byDefault && (await canHaveWorktree(worktrees, cwd)) ? worktreeSandbox(id) : id;
}

async function canHaveWorktree(worktrees: Worktrees, cwd: string): Promise<boolean> {
  try {
    await worktrees.check(cwd);
    return true;
  } catch (error) {
    if (hasCode(error, 'refused')) return false;
    throw error;
  }
}

/**
 * The id of a shared sandbox, whose name is stored. The path of a sandbox is made from its id and not from its name, so that no name leads
 * out of the root.
 */
export async function namedSandbox({ store, sandboxes }: EngineParts, owner: string, name: string): Promise<string> {
  const id = createHash('sha256').update(`${owner}\0${name}`).digest('hex').slice(0, 32);
  await store.nameSandbox(owner, { id, name, place: sandboxes.place });
  return id;
}

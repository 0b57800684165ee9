import { type Command, InvalidArgumentError } from 'commander';
import { ThroughlineError } from '../../../core/errors.ts';
import { type ApiKey, isValid, SCOPES, type Scope } from '../../../core/key.ts';
import { checkName } from '../../../core/names.ts';
import type { Cli, KeyDesk } from '../cli.ts';
import { addExamples } from '../examples.ts';
import { DONE } from '../exit-codes.ts';
import { day } from '../option-values.ts';
import { styled } from '../output.ts';
import { oneLine } from '../terminal-text.ts';
import { time } from '../time.ts';

interface CreateFlags {
  readonly scopes: Scope[];
  readonly expires?: string;
}

export function define(command: Command, cli: Cli): void {
  command
    .command('create')
    .description('Make a key. It is shown once.')
    .argument('<name>', 'what it is for')
    .option('--scopes <list>', `what it may do: ${SCOPES.join(', ')}`, scopes, ['read', 'prompt'])
    .option('--expires <day>', 'the day (UTC) from which it opens nothing', day)
    .action((name: string, flags: CreateFlags) => create(name, flags, cli));
  command
    .command('list', { isDefault: true })
    .description('List keys, newest first.')
    .action(() => list(cli));
  command
    .command('revoke')
    .description('Make a key useless at once; streams that it has opened end within a second.')
    .argument('<id>', 'the part of the key between "tl_" and the dot')
    .action((id: string) => revoke(id, cli));
  command.addHelpText(
    'after',
    '\nA key acts for the owner that --as names. "read" looks, "prompt" speaks to agents, "approve" answers their questions,\n' +
      '"admin" reaches the machine: directories, native sessions, metrics. Never give an agent a key with "approve".',
  );
  addExamples(
    command,
    'throughline keys create "the dashboard" --scopes read',
    'throughline keys create "Ann\'s laptop" --as ann --scopes read,prompt,approve --expires 2027-01-31',
    'throughline keys revoke 0123456789abcdef',
  );
}

async function create(name: string, { scopes: wanted, expires }: CreateFlags, cli: Cli): Promise<void> {
  await atDesk(cli, async (desk) => {
    const expiresAt = expires === undefined ? null : Date.parse(`${expires}T00:00:00Z`);
    if (expiresAt !== null && expiresAt <= Date.now()) {
      throw new ThroughlineError('invalid', `The key would open nothing: ${expires} has begun (UTC).`, {
        hint: 'Give the first day on which it is to be useless: tomorrow, or later.',
      });
    }
    const { key, made } = await desk.create({ name: checkName(name, 'name'), scopes: wanted, expiresAt });
    if (cli.output.json) cli.output.value({ key, ...shown(made) });
    else cli.output.line(key);
    cli.output.note('This is the only time that the key is shown.');
  });
}

async function list(cli: Cli): Promise<void> {
  await atDesk(cli, async (desk) => {
    const keys = await desk.list();
    for (const key of keys) {
      if (cli.output.json) cli.output.value(shown(key));
      else {
        const state = isValid(key, Date.now()) ? styled('green', 'valid') : styled('red', 'useless');
        const about = `  ${key.scopes.join(',')}, made ${time(key.createdAt)}  `;
        cli.output.line(styled('bold', key.id), '  ', state, about, styled('dim', oneLine(key.name)));
      }
    }
    if (keys.length === 0) cli.output.note('There are no keys. Make one with "throughline keys create NAME".');
  });
}

async function revoke(id: string, cli: Cli): Promise<void> {
  await atDesk(cli, async (desk) => {
    const key = await desk.revoke(id);
    if (cli.output.json) cli.output.value(shown(key));
    else cli.output.line(`${key.id} opens nothing any more.`);
  });
}

async function atDesk({ parts, options, exitWith }: Cli, work: (desk: KeyDesk) => Promise<void>): Promise<void> {
  const desk = await parts.keys(options);
  try {
    await work(desk);
    exitWith(DONE);
  } finally {
    await desk.close();
  }
}

function shown({ hash: _, ...key }: ApiKey): Omit<ApiKey, 'hash'> {
  return key;
}

function scopes(list: string): Scope[] {
  return list.split(',').map((word) => {
    const scope = SCOPES.find((known) => known === word.trim());
    if (scope === undefined) throw new InvalidArgumentError(`Known are ${SCOPES.join(', ')}.`);
    return scope;
  });
}

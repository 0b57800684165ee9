import { type Command, Option } from 'commander';
import { ThroughlineError } from '../../../../core/errors.ts';
import { checkName } from '../../../../core/input/names.ts';
import { type ApiKey, checkRights, isValid, ownersOf, SCOPES, type Scope } from '../../../../core/key.ts';
import { addHelp, type Cli, type KeyDesk, subcommand } from '../../cli.ts';
import { day, scopes } from '../../input.ts';
import { time } from '../../lines.ts';
import { styled } from '../../output.ts';
import { oneLine } from '../../terminal-text.ts';

interface CreateFlags {
  readonly scopes: Scope[];
  readonly owners?: string;
  readonly expires?: string;
}

export function define(command: Command, cli: Cli): void {
  command.helpCommand(false);
  subcommand(command, 'create', {
    summary: 'create a key',
    description: 'Create a key. It is shown only once.',
    examples: [
      'throughline keys create "the dashboard" --scopes read',
      'throughline keys create "Ann\'s laptop" --as ann --scopes read,prompt,approve --expires 2027-01-31',
      "throughline keys create 'the shop' --as shop --scopes act-as,read,prompt --owners 'shop:*'",
    ],
  })
    .argument('<name>', 'what it is for')
    .addOption(
      new Option('--scopes <list>', `what it may do: ${SCOPES.join(', ')}`)
        .argParser(scopes)
        .default(['read', 'prompt'], 'read,prompt'),
    )
    .option('--owners <prefix>', 'with "act-as": the owners that it may act for, as app:* (default: all)')
    .option('--expires <day>', 'the first day (UTC) on which it is no longer valid', day)
    .action((name: string, flags: CreateFlags) => create(name, flags, cli));
  subcommand(command, 'list', {
    summary: 'list keys, newest first',
    isDefault: true,
    examples: ['throughline keys list', "throughline keys list --json | jq -r '.id'"],
  }).action(() => list(cli));
  subcommand(command, 'revoke', {
    summary: 'revoke a key at once',
    description: 'Revoke a key at once. Streams that it opened end within a second.',
    examples: ['throughline keys revoke 0123456789abcdef'],
  })
    .argument('<key-id>', 'the part of the key between "tl_" and the dot')
    .action((id: string) => revoke(id, cli));
  addHelp(command, {
    about:
      'A key acts for the owner that --as names. "read" reads, "prompt" sends prompts to agents, "approve" answers their ' +
      'questions, "admin" erases, and gives access to the machine: directories, native sessions, logins, metrics, health. For the ' +
      'owner that the server was started for, it also gets backups of all owners. Never give an agent a key with "approve". A key ' +
      'with "act-as" does all this for other owners too, with the header Throughline-Owner. Give it only to the server of an application ' +
      'with its own login. --owners limits it to owners whose names begin with the prefix.',
    examples: ['throughline keys', 'throughline keys create "the dashboard" --scopes read'],
  });
}

async function create(name: string, flags: CreateFlags, cli: Cli): Promise<void> {
  const { scopes: wanted, owners = null, expires } = flags;
  checkRights({ scopes: wanted, owners });
  await withKeys(cli, async (desk) => {
    const expiresAt = expires === undefined ? null : Date.parse(`${expires}T00:00:00Z`);
    if (expiresAt !== null && expiresAt <= cli.clock.now()) {
      throw new ThroughlineError('invalid', `The key would never be valid: ${expires} has already begun (UTC).`, {
        hint: 'Give the first day on which it is no longer valid: tomorrow or later.',
      });
    }
    const { key, made } = await desk.create({ name: checkName(name, 'name'), scopes: wanted, owners, expiresAt });
    cli.output.result({ key, ...withoutHash(made) }, key);
    cli.output.note('Keep it now: it is not shown again.');
    if (ownersOf(made) !== null) cli.output.note(ownersNote(made));
  });
}

function ownersNote({ owner, owners }: ApiKey): string {
  const whom =
    owners === null ? 'every owner of this data home (--owners limits it)' : `the owners "${oneLine(owners)}"`;
  return `It acts for ${whom}: name one in the header Throughline-Owner. Without the header, it acts for "${oneLine(owner)}".`;
}

async function list(cli: Cli): Promise<void> {
  const { output, clock } = cli;
  await withKeys({ ...cli, options: cli.looking }, async (desk) => {
    const show = (key: Omit<ApiKey, 'hash'>) => {
      const state = isValid(key, clock.now()) ? styled('green', 'valid') : styled('red', 'not valid');
      const whom = key.owners === null ? '' : ` for ${oneLine(key.owners)}`;
      const about = `  ${key.scopes.join(',')}${whom}, created ${time(key.createdAt)}  `;
      output.line(styled('bold', key.id), '  ', state, about, styled('dim', oneLine(key.name)));
    };
    const none = 'There are no keys. Create one with "throughline keys create NAME".';
    await output.each((await desk.list()).map(withoutHash), show, none);
  });
}

async function revoke(id: string, cli: Cli): Promise<void> {
  await withKeys(cli, async (desk) => {
    const key = await desk.revoke(id);
    cli.output.result(withoutHash(key), `Revoked ${key.id}.`);
  });
}

async function withKeys({ parts, options, output, waits }: Cli, work: (desk: KeyDesk) => Promise<void>): Promise<void> {
  output.waitFor(waits);
  const desk = await parts.keys(options);
  try {
    await work(desk);
  } finally {
    await desk.close();
  }
}

function withoutHash({ hash: _, ...key }: ApiKey): Omit<ApiKey, 'hash'> {
  return key;
}

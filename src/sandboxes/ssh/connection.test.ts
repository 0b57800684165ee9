import { spawn } from 'node:child_process';
import { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import type { Client, ClientChannel } from 'ssh2';
import { expect, onTestFinished, test } from 'vitest';
import { temporaryFolder } from '../../../test/temporary-folder.ts';
import { Connection } from './connection.ts';

/** By default, sshd allows so many sessions on a connection. */
const MOST_SESSIONS = 10;

/** A client whose sessions are shells of this machine. As sshd does, it refuses more than ten at a time. */
function localClient(home: string) {
  const sessions = { open: 0, refused: 0 };
  const open = (command: string): ClientChannel => {
    const shell = spawn('/bin/sh', ['-c', command], { env: { PATH: process.env.PATH, HOME: home } });
    onTestFinished(() => void shell.kill('SIGKILL'));
    const duplex = Duplex.from({ readable: shell.stdout, writable: shell.stdin });
    shell.once('close', (code) => {
      sessions.open -= 1;
      duplex.emit('exit', code);
      duplex.emit('close');
    });
    return Object.assign(duplex, { stderr: shell.stderr, close: () => shell.kill() }) as unknown as ClientChannel;
  };
  const exec = async (command: string, opened: (error: Error | undefined, channel?: ClientChannel) => void) => {
    if (sessions.open === MOST_SESSIONS) {
      sessions.refused += 1;
      opened(new Error('open failed'));
      return;
    }
    sessions.open += 1;
    // A session is opened by an answer of the other machine.
    setTimeout(() => opened(undefined, open(command)), 50);
  };
  const client = Object.assign(new EventEmitter(), { exec, destroy: () => client.emit('close') });
  return { sessions, client: client as unknown as Client };
}

test('programs and scripts that start at once do not exceed the sessions that sshd allows', async () => {
  const { sessions, client } = localClient(temporaryFolder());
  const socket = { ref() {}, unref() {} } as Socket;
  const connection = await Connection.over({ client, socket }, { machine: 'there', beatMs: 60_000 });
  onTestFinished(() => connection.close());
  const some = (count: number) => Array.from({ length: count }, () => connection.start('exec sleep 30'));
  await Promise.all(some(3));
  const scripts = Array.from({ length: 4 }, (_, n) => connection.run(`echo ${n}`, new Uint8Array()));
  await Promise.all([...some(3), ...scripts]);
  expect((await Promise.all(scripts)).map(({ stdout }) => stdout.toString())).toEqual(['0\n', '1\n', '2\n', '3\n']);
  expect(sessions.refused).toBe(0);
});

// The only tool of the small agents. It runs a command in a child process or in a terminal of the client.
import { spawn } from 'node:child_process';
import type { AgentConnection } from '@agentclientprotocol/sdk';
import type { Behaviour, SendUpdate, Session } from './agent.ts';

interface Use {
  readonly id: string;
  readonly name: string;
  readonly input: unknown;
}

export async function runTool(
  { id: toolCallId, name, input }: Use,
  session: Session,
  behaviour: Behaviour,
  connection: AgentConnection,
  sendUpdate: SendUpdate,
): Promise<string> {
  if (session.mode === 'quiet') return 'There are no tools.';
  const { command } = input as { command: string };
  const title = `${name} ${command}`;
  await sendUpdate(session.id, { sessionUpdate: 'tool_call', toolCallId, title, kind: 'execute', rawInput: input });
  if (behaviour.asksPermission && !(await isAllowed(toolCallId, title, session, connection))) {
    await sendUpdate(session.id, { sessionUpdate: 'tool_call_update', toolCallId, status: 'failed' });
    return 'It was not allowed.';
  }
  const run = behaviour.terminal
    ? inTerminal(toolCallId, command, session, connection, sendUpdate)
    : inShell(command, session);
  const output = await run;
  await sendUpdate(session.id, {
    sessionUpdate: 'tool_call_update',
    toolCallId,
    status: 'completed',
    ...(behaviour.terminal ? {} : { rawOutput: output }),
  });
  return output;
}

async function isAllowed(toolCallId: string, title: string, session: Session, connection: AgentConnection) {
  const { outcome } = await connection.client.request('session/request_permission', {
    sessionId: session.id,
    toolCall: { toolCallId, title },
    options: [
      { optionId: 'yes', name: 'Yes', kind: 'allow_once' },
      { optionId: 'no', name: 'No', kind: 'reject_once' },
    ],
  });
  return outcome.outcome === 'selected' && outcome.optionId === 'yes';
}

function inShell(command: string, { cwd, abort }: Session): Promise<string> {
  const child = spawn('/bin/sh', ['-c', command], { cwd, stdio: ['ignore', 'pipe', 'inherit'] });
  abort?.signal.addEventListener('abort', () => child.kill('SIGKILL'));
  let output = '';
  child.stdout.on('data', (chunk) => {
    output += chunk;
  });
  return new Promise((resolve) => child.once('close', () => resolve(output)));
}

async function inTerminal(
  toolCallId: string,
  command: string,
  { id: sessionId, cwd }: Session,
  connection: AgentConnection,
  sendUpdate: SendUpdate,
): Promise<string> {
  const terminal = await connection.client.createTerminal({
    sessionId,
    command: '/bin/sh',
    args: ['-c', command],
    cwd,
  });
  const content = [{ type: 'terminal' as const, terminalId: terminal.id }];
  await sendUpdate(sessionId, { sessionUpdate: 'tool_call_update', toolCallId, content });
  await terminal.waitForExit();
  const { output } = await terminal.currentOutput();
  await terminal.release();
  return output;
}

import { randomUUID } from 'node:crypto';
import { isObject } from '../../../core/turn/content.ts';
import { asObject } from '../../shared/json.ts';
import type { ClaudeMessage, ConnectRequest, ControlAnswer, PermissionDecision } from '../connection.ts';

/*
 * The control protocol, as seen between SDK 0.3.325 and program 2.1.325: JSON lines both ways, among the messages.
 *
 * We ask:      {type: control_request, request_id, request: {subtype: initialize | interrupt | mcp_set_servers}}
 * it answers:  {type: control_response, response: {subtype: success, request_id, response: {…}}}
 *              {type: control_response, response: {subtype: error, request_id, error}}   an unknown subtype, for example
 *   `initialize` is answered as soon as the session is loaded, before any prompt, with commands, models, pid and version; a
 *   session that cannot be opened ends the process instead, and no answer comes. After an error there is no session.
 *   `interrupt` is answered at once; the turn's result follows with `terminal_reason: aborted_…`, and then
 *   `session_state_changed: idle`. `mcp_set_servers` is answered with {added, removed, errors: {NAME: why}} when every server is
 *   connected or has failed.
 * It asks:     {type: control_request, request_id, request: {subtype: can_use_tool, tool_name, input, tool_use_id,
 *               permission_suggestions, description, blocked_path, …}}                   only with --permission-prompt-tool stdio
 * we answer:   {type: control_response, response: {subtype: success, request_id, response: {behavior: allow, updatedInput,
 *               updatedPermissions?, toolUseID} | {behavior: deny, message, toolUseID}}}
 * It withdraws a question:  {type: control_cancel_request, request_id}                   after an interrupt, for example
 *
 * A line that is not JSON ends the process.
 */
export class Control {
  readonly #send: (message: unknown) => void;
  readonly #onPermission: ConnectRequest['onPermission'];
  /** Our requests without an answer yet. */
  readonly #asked = new Map<string, (answer: ControlAnswer) => void>();
  /** Claude's questions without an answer yet. */
  readonly #questions = new Map<string, AbortController>();

  constructor(send: (message: unknown) => void, onPermission: ConnectRequest['onPermission']) {
    this.#send = send;
    this.#onPermission = onPermission;
  }

  /** Null: Claude ended before it answered. */
  ask(request: { readonly subtype: string; readonly [field: string]: unknown }): Promise<ControlAnswer> {
    const id = randomUUID();
    const answer = new Promise<ControlAnswer>((resolve) => this.#asked.set(id, resolve));
    this.#send({ type: 'control_request', request_id: id, request });
    return answer;
  }

  /** True: the message belongs to the control protocol, not to the conversation. */
  read(message: ClaudeMessage): boolean {
    switch (message.type) {
      case 'control_response':
        this.#answered(message.response);
        return true;
      case 'control_request':
        void this.#question(message);
        return true;
      case 'control_cancel_request':
        this.#questions.get(String(message.request_id))?.abort();
        return true;
      default:
        return false;
    }
  }

  /** Claude has ended: no more answers will come. */
  end(): void {
    for (const resolve of this.#asked.values()) resolve(null);
    this.#asked.clear();
    for (const question of this.#questions.values()) question.abort();
  }

  #answered(response: unknown): void {
    if (!isObject(response)) return;
    const id = String(response.request_id);
    this.#asked.get(id)?.(
      response.subtype === 'success'
        ? { ok: true, response: response.response }
        : { ok: false, error: String(response.error ?? 'no reason given') },
    );
    this.#asked.delete(id);
  }

  async #question({ request_id, request }: ClaudeMessage): Promise<void> {
    const id = String(request_id);
    if (!isObject(request) || request.subtype !== 'can_use_tool') {
      // Without an answer Claude would wait for ever.
      this.#respond({ subtype: 'error', request_id: id, error: 'Throughline does not support this request' });
      return;
    }
    const withdrawn = new AbortController();
    this.#questions.set(id, withdrawn);
    const input = asObject(request.input);
    const toolUseId = textOrNull(request.tool_use_id);
    const decision = await this.#onPermission({
      toolName: String(request.tool_name),
      input,
      toolUseId,
      suggestions: Array.isArray(request.permission_suggestions) ? request.permission_suggestions : [],
      title: textOrNull(request.title),
      signal: withdrawn.signal,
    }).catch((): PermissionDecision => ({ behavior: 'deny', message: 'The permission could not be asked for.' }));
    this.#questions.delete(id);
    if (withdrawn.signal.aborted) return;
    this.#respond({
      subtype: 'success',
      request_id: id,
      response: { ...decision, ...(toolUseId === null ? {} : { toolUseID: toolUseId }) },
    });
  }

  #respond(response: object): void {
    this.#send({ type: 'control_response', response });
  }
}

function textOrNull(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null;
}

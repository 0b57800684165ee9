const KEPT_BYTES = 4_096;

/** The last of what a program complained about, for error messages. */
export class StderrTail {
  #kept = Buffer.alloc(0);

  async read(stderr: AsyncIterable<Uint8Array>): Promise<void> {
    try {
      for await (const chunk of stderr) this.#kept = Buffer.concat([this.#kept, chunk]).subarray(-KEPT_BYTES);
    } catch {
      // A broken pipe is the end of it.
    }
  }

  /** Without control characters: this ends up on terminals. */
  get text(): string {
    const text = this.#kept.toString('utf8');
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is to be removed
    return text.replaceAll(/\u001b\[[0-9;?]*[ -/]*[@-~]|[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, '').trim();
  }
}

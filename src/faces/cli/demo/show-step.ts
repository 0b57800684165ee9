import { type Output, type Piece, styled } from '../output.ts';
import { receiptLine } from '../receipt-line.ts';
import type { DemoStep } from './run-demo.ts';

export function introduce(about: string, output: Output): void {
  output.line(styled('bold', 'A conversation that outlives its session.'));
  output.line(styled('dim', about));
}

export function showStep(step: DemoStep, output: Output): void {
  output.line();
  switch (step.step) {
    case 'told':
      heading(output, '1  The agent is told a codeword, drawn at random just now');
      detail(output, `you    ${step.prompt}`);
      detail(output, `agent  ${step.reply}`);
      break;
    case 'lost':
      heading(output, '2  Its session is lost');
      detail(
        output,
        `process ${step.pid} killed with SIGKILL, ${step.files} session file${step.files === 1 ? '' : 's'} deleted`,
      );
      break;
    case 'without':
      heading(output, '3  Without Throughline: resume the saved session id, else start anew');
      detail(output, step.refusal === null ? 'resumed' : `resume refused (${step.refusal}), so a new session`);
      question(step, output);
      break;
    case 'with':
      heading(output, '4  With Throughline');
      question(step, output);
      if (step.receipt) detail(output, styled('dim', `receipt  ${receiptLine(step.receipt)}`));
      break;
  }
}

function question(step: Extract<DemoStep, { remembered: boolean }>, output: Output): void {
  detail(output, `you    ${step.prompt}`);
  const verdict = step.remembered ? styled('green', '  ← remembered') : styled('red', '  ← forgotten');
  detail(output, `agent  ${step.reply}`, verdict);
}

function heading(output: Output, text: string): void {
  output.line(styled('cyan', text));
}

function detail(output: Output, ...pieces: readonly Piece[]): void {
  output.line('   ', ...pieces);
}

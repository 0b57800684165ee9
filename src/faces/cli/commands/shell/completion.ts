import { Argument, type Command } from 'commander';
import { addHelp, type Cli } from '../../cli.ts';

/*
 * For every Tab, a shell runs `throughline complete SHELL -- …`. The first line of the answer is `:words`, or `:file` or `:directory` for
 * what the shell completes itself. Each further line is a name: for bash already quoted, for the others followed by a tab and a
 * description. A name is data: none of these scripts lets the shell expand it.
 */
const SCRIPTS = {
  bash: `_throughline() {
  local line program first=1
  program=$(type -P -- "$1") || program=throughline
  COMPREPLY=()
  while IFS= read -r line; do
    if [[ -n $first ]]; then
      first=
      [[ $line == :words ]] || compopt -o default 2>/dev/null
    else
      COMPREPLY+=("$line")
    fi
  done < <("$program" complete bash -- "\${COMP_LINE:0:COMP_POINT}" "$COMP_WORDBREAKS" 2>/dev/null)
}
complete -F _throughline throughline
`,
  zsh: `#compdef throughline
_throughline() {
  local line
  local -a lines names shown
  lines=("\${(@f)$(command throughline complete zsh -- "\${(@Q)words[2,CURRENT-1]}" "\${(Q)PREFIX}" 2>/dev/null)}")
  case \${lines[1]} in
    :file) _files; return ;;
    :directory) _files -/; return ;;
  esac
  for line in "\${(@)lines[2,-1]}"; do
    names+=("\${line%%$'\\t'*}")
    shown+=("\${line/$'\\t'/  -- }")
  done
  (( \${#names} )) && compadd -l -V throughline -d shown -a names
}
if [[ $funcstack[1] == _throughline ]]; then _throughline "$@"; else compdef _throughline throughline; fi
`,
  fish: `function __throughline_complete
  set -l token (commandline -ct)
  set -l lines (command throughline complete fish -- (commandline -opc) "$token" 2>/dev/null)
  switch "$lines[1]"
    case ':file'
      __fish_complete_path "$token"
    case ':directory'
      __fish_complete_directories "$token"
    case '*'
      printf '%s\\n' $lines[2..-1]
  end
end
complete -c throughline -f -a '(__throughline_complete)'
`,
} as const;

export function define(command: Command, cli: Cli): void {
  command
    .addArgument(new Argument('<shell>', 'your shell').choices(Object.keys(SCRIPTS)))
    .action((shell: keyof typeof SCRIPTS) => cli.output.line(SCRIPTS[shell].trimEnd()));
  addHelp(command, {
    about:
      'Prints a script that completes commands, options, conversations, agents, tasks and questions with the Tab key. Install it once:\n' +
      '  bash  add to ~/.bashrc:  source <(throughline completion bash)\n' +
      '  zsh   add to ~/.zshrc, after compinit:  source <(throughline completion zsh)\n' +
      '  fish  throughline completion fish > ~/.config/fish/completions/throughline.fish',
    examples: ['throughline completion bash', 'source <(throughline completion bash)'],
  });
}

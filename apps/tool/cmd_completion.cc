// rio-tool completion: a script for the shell, made from the commands themselves.
#include <memory>
#include <set>

#include "apps/tool/command.hpp"
#include "apps/tool/words.hpp"

namespace rio::tool {
namespace {

constexpr const char* kHead =
    R"(# Completion of rio-tool for bash; made by: rio-tool completion bash
_rio_tool() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} path='' words='' i
  # Bash parts words at "=" and ":".
  [ "$prev" != = ] || prev=${COMP_WORDS[COMP_CWORD-2]}
  [ "$cur" != = ] || cur=''
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$path ${COMP_WORDS[i]}" in
)";

constexpr const char* kTail = R"(  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o default -F _rio_tool rio-tool
)";

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    text.append(text.empty() ? "" : " ").append(word);
  }
  return text;
}

/// "--size" and "-s" of an option, none of a positional.
std::vector<std::string> names_of(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_lnames()) {
    names.push_back("--" + name);
  }
  for (const std::string& name : option.get_snames()) {
    names.push_back("-" + name);
  }
  return names;
}

/// Options of a command: its own, those of its groups, and those of the commands above, which may
/// stand behind it as well.
std::vector<const CLI::Option*> options_of(const CLI::App& app, bool own_only) {
  std::vector<const CLI::Option*> options = app.get_options();
  for (const CLI::App* group : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (group->get_name().empty()) {
      const auto more = options_of(*group, true);
      options.insert(options.end(), more.begin(), more.end());
    }
  }
  if (!own_only && app.get_parent() != nullptr) {
    const auto more = options_of(*app.get_parent(), false);
    options.insert(options.end(), more.begin(), more.end());
  }
  return options;
}

struct Script {
  std::string paths;   ///< lines of the case that finds the command
  std::string values;  ///< lines of the case that completes a value
  std::string words;   ///< lines of the case that completes anything else
};

void add_lines(const CLI::App& app, const std::string& path, Script* script) {
  std::vector<std::string> words;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!sub->get_name().empty()) {
      words.push_back(sub->get_name());
      const std::string below = path + " " + sub->get_name();
      script->paths.append("      '").append(below).append("') path='").append(below);
      script->paths += "' ;;\n";
      add_lines(*sub, below, script);
    }
  }
  std::set<std::string> seen;
  for (const CLI::Option* option : options_of(app, false)) {
    const auto names = names_of(*option);
    const auto values = fixed_values(option->get_type_name());
    if (names.empty() && option->get_positional()) {
      words.insert(words.end(), values.begin(), values.end());
    }
    for (const std::string& name : names) {
      if (!seen.insert(name).second) {
        continue;
      }
      words.push_back(name);
      if (!values.empty()) {
        script->values.append("    '").append(path).append(" ").append(name);
        script->values.append("') words='").append(joined(values)).append("' ;;\n");
      }
    }
  }
  script->words += "    '" + path + " '*) words='" + joined(words) + "' ;;\n";
}

/// It completes subcommands, their options, and values of options that are fixed.
std::string bash_completion(const CLI::App& app) {
  Script script;
  add_lines(app, "", &script);
  return kHead + script.paths +
         "    esac\n"
         "  done\n"
         "  case \"$path $prev\" in\n" +
         script.values + script.words + kTail;
}

}  // namespace

void add_completion(CLI::App& app, GlobalOptions& context) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("completion", "Print a script that completes our options");
  command->add_option("shell", *shell, "The shell: bash")
      ->required()
      ->check(CLI::IsMember({"bash"}));
  command->footer(
      "Examples\n"
      "  source <(rio-tool completion bash)\n"
      "  rio-tool completion bash > /etc/bash_completion.d/rio-tool");
  command->callback([&app, &context, shell] {
    const std::string script = bash_completion(app);
    print_result(context, {{"shell", *shell}, {"script", script}}, script);
    context.exit_code = kExitOk;
  });
}

}  // namespace rio::tool

#include "apps/tool/completion.hpp"

#include <algorithm>
#include <cctype>

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

void add_command(const CLI::App& app, const std::string& path, Script* script) {
  std::vector<std::string> words;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!sub->get_name().empty()) {
      words.push_back(sub->get_name());
      const std::string below = std::string(path).append(" ").append(sub->get_name());
      script->paths.append("      '").append(below).append("') path='");
      script->paths.append(below).append("' ;;\n");
      add_command(*sub, below, script);
    }
  }
  std::vector<std::string> seen;
  for (const CLI::Option* option : options_of(app, false)) {
    const auto names = names_of(*option);
    const auto values = fixed_values(option->get_type_name());
    if (names.empty() && option->get_positional()) {
      words.insert(words.end(), values.begin(), values.end());
    }
    for (const std::string& name : names) {
      if (std::find(seen.begin(), seen.end(), name) != seen.end()) {
        continue;
      }
      seen.push_back(name);
      words.push_back(name);
      if (!values.empty()) {
        script->values.append("    '").append(path).append(" ").append(name);
        script->values.append("') words='").append(joined(values)).append("' ;;\n");
      }
    }
  }
  script->words += "    '" + path + " '*) words='" + joined(words) + "' ;;\n";
}

}  // namespace

std::vector<std::string> fixed_values(const std::string& type_name) {
  std::vector<std::string> values;
  std::string word;
  const size_t open = type_name.find('{');
  const std::string text = open == std::string::npos ? type_name : type_name.substr(open);
  const bool list = open != std::string::npos || text.find('|') != std::string::npos;
  const auto add = [&] {
    const bool name = std::any_of(word.begin(), word.end(), [](unsigned char c) {
      return std::islower(c) != 0 || std::isdigit(c) != 0;
    });
    if (list && name) {
      values.push_back(word);
    }
    word.clear();
  };
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.') {
      word += c;
    } else {
      add();
      if (c == '}') {
        break;
      }
    }
  }
  add();
  return values;
}

std::string bash_completion(const CLI::App& app) {
  Script script;
  add_command(app, "", &script);
  return kHead + script.paths +
         "    esac\n"
         "  done\n"
         "  case \"$path $prev\" in\n" +
         script.values + script.words + kTail;
}

}  // namespace rio::tool

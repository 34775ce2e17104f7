// rio-tool completion: a script for the shell.
#include <memory>

#include "apps/tool/command.hpp"
#include "apps/tool/completion.hpp"

namespace rio::tool {

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

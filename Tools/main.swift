import CountersignCLI

Tool.runProcess(commands: DevelopmentCommand.commands)

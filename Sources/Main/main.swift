import CountersignCLI

Tool.runProcess()

print("countersign")

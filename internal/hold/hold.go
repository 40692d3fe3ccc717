package hold
